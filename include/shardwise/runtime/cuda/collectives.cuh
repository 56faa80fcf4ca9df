// SPDX-License-Identifier: Apache-2.0
// Collectives of one rank over NCCL: what threads_collectives does, enqueued on a stream; the order of sums is NCCL's, but of small all-reduces
// between devices that write into each other's memory: see one_shot.
#pragma once

#include <cstdint>
#include <stdexcept>

#include <shardwise/runtime/cuda/context.hpp>
#include <shardwise/runtime/cuda/nccl_error.hpp>
#include <shardwise/runtime/cuda/one_shot.cuh>
#include <shardwise/runtime/host/collective_blocks.hpp>
#include <shardwise/runtime/cuda/reductions.cuh>
#include <shardwise/runtime/cuda/regroup.cuh>
#include <shardwise/runtime/cuda/collective_workspace.hpp>
#include <shardwise/runtime/rank.hpp>

namespace shardwise::inline v0_1::cuda {

namespace exchange {

// A dim of a local block cut into the ranks' pieces: piece k is [k * chunk, (k + 1) * chunk) in the coordinates of
// the undivided dim, in which the block begins at `first`.
struct cut {
  int dim = 0;
  std::int64_t chunk = 1, first = 0;
};

constexpr interval piece(const cut& q, std::int64_t extent, int k) {
  const std::int64_t lo = q.chunk * k - q.first, hi = lo + q.chunk;
  const std::int64_t begin = lo < 0 ? 0 : lo < extent ? lo : extent;
  const std::int64_t end = hi < 0 ? 0 : hi < extent ? hi : extent;
  return {begin, end - begin};
}

// Lowering makes the operand of a redistribution dense; NCCL could read nothing else.
inline void require_dense(const layout& l) {
  std::int64_t step = 1;
  for (int d = l.rank - 1; d >= 0; --d) {
    if (l.ext[d] != 1 && l.str[d] != step)
      throw std::logic_error("shardwise: a collective got a strided block; make it contiguous before it is redistributed");
    step *= l.ext[d];
  }
}

// What a rank sends of an all-reduce in which each adds up a part and passes it on: of the others' parts its own operand, and its sums.
inline std::int64_t sent_by_all_reduce(const call& c) {
  const std::int64_t n = c.l[0].numel(), own = split({0, n}, 1, c.ranks, c.coordinate).size;
  return n - own + own * (c.ranks - 1);
}
template <class T>
std::int64_t all_reduce(const call& c, context& ctx, ncclComm_t comm) {
  const std::int64_t n = c.l[0].numel();
  if (n == 0) return 0;
  void* const o = travels_wide<T>(c.from) ? c.workspace : c.p[result];
  const void* const x = begin_reduction(c, static_cast<const T*>(c.p[0]), o, n, ctx);
  check(ncclAllReduce(x, o, static_cast<std::size_t>(n), reduced_type<T>(c.from), nccl_op(c.from.op), comm, ctx.stream),
        "ncclAllReduce");
  return sent_by_all_reduce(c);
}

// Every rank's block, of any size, lands where the pieces before it end. NCCL has no collective with unequal counts;
// sends and receives in one group are one kernel, pad nothing, and need no partner where a shard is empty.
template <class T>
std::int64_t all_gather(const call& c, context& ctx, ncclComm_t comm) {
  const layout &x = c.l[0], &o = c.l[result];
  const int d = c.from.dim;
  if (o.numel() == 0) return 0;
  const auto [outer, inner] = runtime::around(o.ext, o.rank, d);
  const cut q{d, chunk_size(o.ext[d], c.from.block, c.ranks)};
  const std::int64_t mine = x.numel();
  T* const landing = static_cast<T*>(outer > 1 ? c.workspace : c.p[result]);
  if (q.chunk * c.ranks == o.ext[d]) {
    check(ncclAllGather(c.p[0], landing, static_cast<std::size_t>(mine), nccl_type<T>(), comm, ctx.stream), "ncclAllGather");
  } else {
    nccl_group g;
    for (int k = 0; k < c.ranks; ++k) {
      const interval part = piece(q, o.ext[d], k);
      if (mine > 0)
        g.keep(ncclSend(c.p[0], static_cast<std::size_t>(mine), nccl_type<T>(), k, comm, ctx.stream), "ncclSend");
      if (part.size > 0)
        g.keep(ncclRecv(landing + outer * part.begin * inner, static_cast<std::size_t>(outer * part.size * inner),
                        nccl_type<T>(), k, comm, ctx.stream),
               "ncclRecv");
    }
    g.end();
  }
  if (outer > 1) regroup_rows<1, sizeof(T)>(landing, c.p[result], outer, o.ext[d] * inner, q.chunk * inner, 0, ctx);
  return mine * (c.ranks - 1);
}

// Unequal parts are one reduction each, all in one group: exact sizes, and nothing behind the operand is read.
template <class T>
std::int64_t reduce_scatter(const call& c, context& ctx, ncclComm_t comm) {
  const layout &x = c.l[0], &o = c.l[result];
  const int d = c.to.dim;
  if (x.numel() == 0) return 0;
  const auto [outer, inner] = runtime::around(x.ext, x.rank, d);
  const cut q{d, chunk_size(x.ext[d], c.to.block, c.ranks)};
  const T* source = static_cast<const T*>(c.p[0]);
  if (outer > 1) {
    T* const rows = static_cast<T*>(after_keys<T>(c));
    regroup_rows<0, sizeof(T)>(source, rows, outer, x.ext[d] * inner, q.chunk * inner, 0, ctx);
    source = rows;
  }
  const bool wide = travels_wide<T>(c.from);
  const std::size_t size = wide ? sizeof(float) : sizeof(T);
  const char* const numbers = static_cast<const char*>(begin_reduction(c, source, c.workspace, x.numel(), ctx));
  void* const to = wide ? const_cast<float*>(reduced_keys(c)) : c.p[result];
  const ncclRedOp_t op = nccl_op(c.from.op);
  if (q.chunk * c.ranks == x.ext[d]) {
    check(ncclReduceScatter(numbers, to, static_cast<std::size_t>(o.numel()), reduced_type<T>(c.from), op, comm, ctx.stream),
          "ncclReduceScatter");
  } else {
    nccl_group g;
    for (int k = 0; k < c.ranks; ++k) {
      const interval part = piece(q, x.ext[d], k);
      if (part.size > 0)
        g.keep(ncclReduce(numbers + static_cast<std::size_t>(outer * part.begin * inner) * size, to,
                          static_cast<std::size_t>(outer * part.size * inner), reduced_type<T>(c.from), op, k, comm,
                          ctx.stream),
               "ncclReduce");
    }
    g.end();
  }
  return x.numel() - o.numel();
}

// The operand cut as `give` says, piece k to rank k; the result put together from the pieces that `take` says.
template <class T>
std::int64_t all_to_all(const call& c, context& ctx, ncclComm_t comm, const cut& give, const cut& take) {
  const layout &x = c.l[0], &o = c.l[result];
  const runtime::sides sx = runtime::around(x.ext, x.rank, give.dim), so = runtime::around(o.ext, o.rank, take.dim);
  const bool packs = sx.outer > 1, lands = so.outer > 1;
  const T* source = static_cast<const T*>(c.p[0]);
  const std::int64_t packed = packs ? runtime::scratch_align(x.numel() * static_cast<std::int64_t>(sizeof(T))) : 0;
  T* const landing = lands ? reinterpret_cast<T*>(static_cast<char*>(c.workspace) + packed) : static_cast<T*>(c.p[result]);
  if (packs) {
    regroup_rows<0, sizeof(T)>(source, c.workspace, sx.outer, x.ext[give.dim] * sx.inner, give.chunk * sx.inner,
                               give.first * sx.inner, ctx);
    source = static_cast<const T*>(c.workspace);
  }
  std::int64_t sent = 0;
  nccl_group g;
  for (int k = 0; k < c.ranks; ++k) {
    const interval out = piece(give, x.ext[give.dim], k), in = piece(take, o.ext[take.dim], k);
    const std::int64_t goes = sx.outer * out.size * sx.inner, comes = so.outer * in.size * so.inner;
    if (goes > 0)
      g.keep(ncclSend(source + sx.outer * out.begin * sx.inner, static_cast<std::size_t>(goes), nccl_type<T>(), k, comm,
                      ctx.stream),
             "ncclSend");
    if (comes > 0)
      g.keep(ncclRecv(landing + so.outer * in.begin * so.inner, static_cast<std::size_t>(comes), nccl_type<T>(), k, comm,
                      ctx.stream),
             "ncclRecv");
    if (k != c.coordinate) sent += goes;
  }
  g.end();
  if (lands)
    regroup_rows<1, sizeof(T)>(landing, c.p[result], so.outer, o.ext[take.dim] * so.inner, take.chunk * so.inner,
                               take.first * so.inner, ctx);
  return sent;
}

// Rows [from, from + size) of a block's dim with `rows` of them to rows [to, ...) of another's, `outer` times.
template <class T>
void copy_rows(const T* x, std::int64_t from, std::int64_t rows, T* o, std::int64_t to, std::int64_t o_rows,
               std::int64_t size, const runtime::sides& s, context& ctx) {
  const auto bytes = [&](std::int64_t n) { return static_cast<std::size_t>(n * s.inner) * sizeof(T); };
  check(cudaMemcpy2DAsync(o + to * s.inner, bytes(o_rows), x + from * s.inner, bytes(rows), bytes(size),
                          static_cast<std::size_t>(s.outer), cudaMemcpyDeviceToDevice, ctx.stream),
        "cudaMemcpy2DAsync");
}
// To each rank those of this one's rows that it lacks. Rows that lie apart are put side by side in scratch, what is sent in front of
// what comes.
template <class T>
std::int64_t exchange_halo(const call& c, context& ctx, ncclComm_t comm) {
  const layout &x = c.l[0], &o = c.l[result];
  const int d = c.to.dim;
  const runtime::sides s = runtime::around(x.ext, x.rank, d);
  if (s.outer * s.inner == 0) return 0;
  const bool apart = s.outer > 1;
  const T* const source = static_cast<const T*>(c.p[0]);
  T* const out = static_cast<T*>(c.p[result]);
  const auto sent_to = [&](int k) { return halo_part(c.to, x.global[d], c.ranks, c.coordinate, k); };
  const auto comes_from = [&](int k) { return halo_part(c.to, x.global[d], c.ranks, k, c.coordinate); };
  std::int64_t sent = 0;
  for (int k = 0; k < c.ranks; ++k) {
    const interval part = sent_to(k);
    if (part.size == 0) continue;
    if (k == c.coordinate) {
      copy_rows(source, part.begin - x.origin[d], x.ext[d], out, part.begin - o.origin[d], o.ext[d], part.size, s, ctx);
      continue;
    }
    if (apart)
      copy_rows(source, part.begin - x.origin[d], x.ext[d], static_cast<T*>(c.workspace) + sent, 0, part.size, part.size, s,
                ctx);
    sent += s.outer * part.size * s.inner;
  }
  const std::int64_t packed = runtime::scratch_align(sent * static_cast<std::int64_t>(sizeof(T)));
  T* const landing = apart ? reinterpret_cast<T*>(static_cast<char*>(c.workspace) + packed) : nullptr;
  nccl_group g;
  std::int64_t goes = 0, come = 0;
  for (int k = 0; k < c.ranks; ++k) {
    if (k == c.coordinate) continue;
    const interval to = sent_to(k), from = comes_from(k);
    if (to.size > 0) {
      const std::int64_t n = s.outer * to.size * s.inner;
      const T* const at = apart ? static_cast<const T*>(c.workspace) + goes : source + (to.begin - x.origin[d]) * s.inner;
      g.keep(ncclSend(at, static_cast<std::size_t>(n), nccl_type<T>(), k, comm, ctx.stream), "ncclSend");
      goes += n;
    }
    if (from.size > 0) {
      const std::int64_t n = s.outer * from.size * s.inner;
      T* const at = apart ? landing + come : out + (from.begin - o.origin[d]) * s.inner;
      g.keep(ncclRecv(at, static_cast<std::size_t>(n), nccl_type<T>(), k, comm, ctx.stream), "ncclRecv");
      come += n;
    }
  }
  g.end();
  come = 0;
  for (int k = 0; apart && k < c.ranks; ++k) {
    const interval from = comes_from(k);
    if (k == c.coordinate || from.size == 0) continue;
    copy_rows(static_cast<const T*>(landing) + come, 0, from.size, out, from.begin - o.origin[d], o.ext[d], from.size, s,
              ctx);
    come += s.outer * from.size * s.inner;
  }
  return sent;
}

}  // namespace exchange

namespace exchange {

// All of a collective but what ends a reduction; the elements sent.
template <class T>
std::int64_t begin(const call& c, context& ctx, ncclComm_t comm) {
  require_dense(c.l[0]);
  require_dense(c.l[result]);
  const layout &x = c.l[0], &o = c.l[result];
  switch (c.kind) {
    case transition::all_reduce: return all_reduce<T>(c, ctx, comm);
    case transition::all_gather: return all_gather<T>(c, ctx, comm);
    case transition::reduce_scatter: return reduce_scatter<T>(c, ctx, comm);
    case transition::all_to_all: {
      const int f = c.from.dim, t = c.to.dim;
      if (f != t)
        return all_to_all<T>(c, ctx, comm, {t, chunk_size(x.ext[t], c.to.block, c.ranks), 0},
                             {f, chunk_size(o.ext[f], c.from.block, c.ranks), 0});
      // without a group_block in l[1] the axis is taken to be the only one that divides the dim
      const bool told = c.l[1].rank == x.rank;
      const interval whole{told ? c.l[1].origin[f] : 0, told ? c.l[1].ext[f] : x.global[f]};
      if (whole.size == 0) return 0;
      return all_to_all<T>(c, ctx, comm, {f, chunk_size(whole.size, c.to.block, c.ranks), x.origin[f] - whole.begin},
                           {f, chunk_size(whole.size, c.from.block, c.ranks), o.origin[f] - whole.begin});
    }
    case transition::exchange_halo: return exchange_halo<T>(c, ctx, comm);
    case transition::none:
    case transition::take_chunk:
    case transition::to_partial:
    case transition::place_chunk: break;
  }
  runtime::not_a_collective(c.kind);
}
template <class T>
void end(const call& c, context& ctx) {
  if ((c.kind == transition::all_reduce || c.kind == transition::reduce_scatter) && c.l[0].numel() > 0)
    end_reduction<T>(c, ctx);
}

// Whether nothing but calls of NCCL stands between a collective's begin and its end: no kernel that puts rows together in scratch,
// none that begins a reduction. Inside a group such a kernel would run before what NCCL does.
inline bool is_plain(const call& c) {
  const auto whole_rows = [](const layout& l, int dim) { return runtime::around(l.ext, l.rank, dim).outer <= 1; };
  switch (c.kind) {
    case transition::all_reduce: return !c.from.is_norm() && !keeps_keys(c.from);
    case transition::reduce_scatter: return !c.from.is_norm() && !keeps_keys(c.from) && whole_rows(c.l[0], c.to.dim);
    case transition::all_gather: return whole_rows(c.l[result], c.from.dim);
    case transition::all_to_all:  // how many rows a block has differs from rank to rank
    case transition::exchange_halo:
    case transition::none:
    case transition::take_chunk:
    case transition::to_partial:
    case transition::place_chunk: break;
  }
  return false;
}

}  // namespace exchange

// What a collective is on elements of one type.
struct collective_functions {
  std::int64_t (*begin)(const call&, context&, ncclComm_t);  // elements sent
  void (*end)(const call&, context&);
  std::int64_t size;  // of an element
  void (*one_shot)(const one_shot::parts&, context&, const peer_slots&);
};
template <class T>
inline constexpr collective_functions collectives_of{&exchange::begin<T>, &exchange::end<T>, sizeof(T),
                                                     &one_shot::all_reduce<T>};
template <>
inline constexpr collective_functions collectives_of<bool>{&exchange::begin<bool>, &exchange::end<bool>, 1, nullptr};

namespace one_shot {

// Norms stay with NCCL: kernels that take powers and roots stand around their sums, and NCCL's share of such a reduction is small.
inline bool may_take(const collective_functions& on, const call& c) {
  return c.kind == transition::all_reduce && !c.from.is_norm() && on.one_shot && c.l[0].numel() > 0;
}
// Words of all that such kernels may take of `n` calls that go out together.
template <class Functions>
std::int64_t words_of(const Functions& functions_of, const call* c, std::size_t n) {
  std::int64_t words = 0;
  for (std::size_t k = 0; k < n; ++k)
    if (const collective_functions& on = functions_of(c[k]); may_take(on, c[k]))
      words += words_of(c[k].l[0].numel() * on.size);
  return words;
}
// Enqueues all of these, as few kernels as they have types, or room for parts; the bytes sent, as NCCL's are counted.
template <class Functions>
std::int64_t communicate(const Functions& functions_of, const call* c, std::size_t n, context& ctx,
                         const peer_slots& slots) {
  std::int64_t sent = 0;
  parts together;
  const collective_functions* of = nullptr;
  for (std::size_t k = 0; k < n; ++k) {
    const collective_functions& on = functions_of(c[k]);
    if (!may_take(on, c[k])) continue;
    exchange::require_dense(c[k].l[0]);
    exchange::require_dense(c[k].l[result]);
    if (together.count == max_parts || (of && of != &on)) {
      of->one_shot(together, ctx, slots);
      together = {};
    }
    of = &on;
    const std::int64_t elements = c[k].l[0].numel();
    together.add(c[k].p[0], c[k].p[result], elements, elements * on.size, c[k].from.op);
    sent += exchange::sent_by_all_reduce(c[k]) * on.size;
  }
  of->one_shot(together, ctx, slots);
  return sent;
}

}  // namespace one_shot

// Enqueues a batch of `n` calls on ctx.stream, one alone among them; neither allocates nor waits, and may be captured (after one run
// outside, in which NCCL connects the ranks). All ranks of the axis call it in one order. Returns the payload bytes that this rank
// sends, counted from what is passed to NCCL: transition's bytes_sent, and no padding; the keys of two-byte elements count as such.
// Small all-reduces go through `slots`, if there are any and all of the batch's have room there. Of the others those that are NCCL's alone
// are in one group, one launch for all of them; the rest, which share their scratch, come one after the other behind it. All ranks of
// the axis agree on which are which: sizes, what is_plain reads and the slots' room are equal on them.
// functions_of(call): those of its element type, which may differ from call to call.
template <class Functions>
  requires requires(const Functions& f, const call& c) { f(c).size; }
std::int64_t communicate(const Functions& functions_of, const call* c, std::size_t n, context& ctx, ncclComm_t comm,
                         const peer_slots* slots = nullptr) {
  const std::int64_t words = slots ? one_shot::words_of(functions_of, c, n) : 0;
  const bool takes = words > 0 && words <= slots->words;
  const auto is_left = [&](const call& x) { return !takes || !one_shot::may_take(functions_of(x), x); };
  std::int64_t sent = takes ? one_shot::communicate(functions_of, c, n, ctx, *slots) : 0;
  if (n > 1) {
    nccl_group g;
    for (std::size_t k = 0; k < n; ++k)
      if (is_left(c[k]) && exchange::is_plain(c[k])) {
        const collective_functions& on = functions_of(c[k]);
        sent += on.begin(c[k], ctx, comm) * on.size;
      }
    g.end();
  }
  const auto is_begun = [&](const call& x) { return n > 1 && exchange::is_plain(x); };
  for (std::size_t k = 0; k < n; ++k)
    if (is_left(c[k]) && is_begun(c[k])) functions_of(c[k]).end(c[k], ctx);
  for (std::size_t k = 0; k < n; ++k)
    if (is_left(c[k]) && !is_begun(c[k])) {
      const collective_functions& on = functions_of(c[k]);
      sent += on.begin(c[k], ctx, comm) * on.size;
      on.end(c[k], ctx);
    }
  return sent;
}
inline std::int64_t communicate(const collective_functions& on, const call& c, context& ctx, ncclComm_t comm,
                                const peer_slots* slots = nullptr) {
  return communicate([&](const call&) -> const collective_functions& { return on; }, &c, 1, ctx, comm, slots);
}
template <class T>
std::int64_t communicate(const call& c, context& ctx, ncclComm_t comm, const peer_slots* slots = nullptr) {
  return communicate(collectives_of<T>, c, ctx, comm, slots);
}
template <class T>
std::int64_t communicate(const call* c, std::size_t n, context& ctx, ncclComm_t comm, const peer_slots* slots = nullptr) {
  return communicate([](const call&) -> const collective_functions& { return collectives_of<T>; }, c, n, ctx, comm, slots);
}

}  // namespace shardwise::inline v0_1::cuda
