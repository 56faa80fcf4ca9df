// SPDX-License-Identifier: Apache-2.0
// Collectives of a rank without peers: every peer is taken to hold what this rank holds. See fake_rank for the law.
#pragma once

#include <shardwise/runtime/host/collective_blocks.hpp>
#include <shardwise/runtime/host/copy_block.hpp>
#include <shardwise/runtime/rank.hpp>

namespace shardwise::inline v0_1::fake {

using runtime::call;
using runtime::layout;
using runtime::result;

namespace detail {

constexpr std::int64_t elements_but(const layout& l, int dim) {
  std::int64_t n = 1;
  for (int d = 0; d < l.rank; ++d) n *= d == dim ? 1 : l.ext[d];
  return n;
}

// x op x op ... op x, n operands in rank order.
template <class T>
T repeated(const placement& by, T x, int n) {
  runtime::begin_reduction(by, &x, 1);
  T v = x;
  for (int r = 1; r < n; ++r) v = runtime::combine(by.op, v, x);
  runtime::end_reduction(by, &v, 1, n);
  return v;
}

// The part of what the ranks hold together along `dim`, where `whole` is cut into their blocks, that lies in
// [out_begin, out_begin + o.ext[dim]); x_begin and ext choose the elements of this rank's block in the other dims.
template <class T>
void assemble(const call& c, interval whole, std::int64_t out_begin, const std::int64_t* x_first,
              const std::int64_t* extents) {
  const layout& x = c.l[0];
  const layout& o = c.l[result];
  const int d = c.from.dim;
  T* const out = static_cast<T*>(c.p[result]);
  const std::int64_t total = o.numel(), out_end = out_begin + o.ext[d];
  for (std::int64_t i = 0; i < total; ++i) out[i] = T(0);
  if (total == 0) return;
  for (int r = 0; r < c.ranks; ++r) {
    const interval peer = split(whole, c.from.block, c.ranks, r);
    const std::int64_t held = peer.size < x.ext[d] ? peer.size : x.ext[d];
    const std::int64_t lo = peer.begin > out_begin ? peer.begin : out_begin;
    const std::int64_t hi = peer.begin + held < out_end ? peer.begin + held : out_end;
    if (lo >= hi) continue;
    std::int64_t x_begin[max_rank]{}, o_begin[max_rank]{}, ext[max_rank]{};
    for (int k = 0; k < x.rank; ++k) {
      x_begin[k] = x_first[k];
      ext[k] = extents[k];
    }
    x_begin[d] = lo - peer.begin;
    o_begin[d] = lo - out_begin;
    ext[d] = hi - lo;
    host::copy_block<T>(static_cast<const T*>(c.p[0]), x, x_begin, out, o, o_begin, ext);
  }
}

}  // namespace detail

template <class T, class Rank>
void all_reduce(const call& c, Rank& rank) {
  const std::int64_t total = c.l[0].numel();
  const T* const x = static_cast<const T*>(c.p[0]);
  T* const out = static_cast<T*>(c.p[result]);
  for (std::int64_t i = 0; i < total; ++i) out[i] = detail::repeated(c.from, x[i], c.ranks);
  const std::int64_t own = split({0, total}, 1, c.ranks, c.coordinate).size;
  rank.note(c.kind, c.axis, (total - own + own * (c.ranks - 1)) * static_cast<std::int64_t>(sizeof(T)));
}

template <class T, class Rank>
void reduce_scatter(const call& c, Rank& rank) {
  const layout& x = c.l[0];
  const layout& o = c.l[result];
  const int d = c.to.dim;
  std::int64_t begin[max_rank]{};
  const std::int64_t zero[max_rank]{};
  begin[d] = split({0, x.ext[d]}, c.to.block, c.ranks, c.coordinate).begin;
  T* const out = static_cast<T*>(c.p[result]);
  host::copy_block<T>(static_cast<const T*>(c.p[0]), x, begin, out, o, zero, o.ext);
  const std::int64_t own = o.numel();
  for (std::int64_t i = 0; i < own; ++i) out[i] = detail::repeated(c.from, out[i], c.ranks);
  rank.note(c.kind, c.axis, (x.numel() - own) * static_cast<std::int64_t>(sizeof(T)));
}

template <class T, class Rank>
void all_gather(const call& c, Rank& rank) {
  const layout& x = c.l[0];
  const std::int64_t zero[max_rank]{};
  detail::assemble<T>(c, {0, c.l[result].ext[c.from.dim]}, 0, zero, x.ext);
  rank.note(c.kind, c.axis, x.numel() * (c.ranks - 1) * static_cast<std::int64_t>(sizeof(T)));
}

template <class T, class Rank>
void all_to_all(const call& c, Rank& rank) {
  const layout& x = c.l[0];
  const layout& o = c.l[result];
  const int from = c.from.dim, to = c.to.dim;
  std::int64_t first[max_rank]{}, ext[max_rank]{};
  for (int d = 0; d < x.rank; ++d) ext[d] = x.ext[d];
  const interval mine = split({0, x.ext[to]}, c.to.block, c.ranks, c.coordinate);
  first[to] = mine.begin;
  ext[to] = mine.size;
  detail::assemble<T>(c, {0, o.ext[from]}, 0, first, ext);
  rank.note(c.kind, c.axis, detail::elements_but(x, to) * (x.ext[to] - mine.size) * static_cast<std::int64_t>(sizeof(T)));
}

// Other boundaries of the same dim.
template <class T, class Rank>
void resplit(const call& c, Rank& rank) {
  const layout& x = c.l[0];
  const layout& o = c.l[result];
  const int d = c.to.dim;
  const std::int64_t zero[max_rank]{};
  detail::assemble<T>(c, c.cut, o.origin[d], zero, x.ext);
  const std::int64_t end = x.origin[d] + x.ext[d], o_end = o.origin[d] + o.ext[d];
  const std::int64_t lo = x.origin[d] > o.origin[d] ? x.origin[d] : o.origin[d], hi = end < o_end ? end : o_end;
  const std::int64_t kept = lo < hi ? hi - lo : 0;
  rank.note(c.kind, c.axis, detail::elements_but(x, d) * (x.ext[d] - kept) * static_cast<std::int64_t>(sizeof(T)));
}

// Of owners that hold what this rank holds.
template <class T, class Rank>
void exchange_halo(const call& c, Rank& rank) {
  const layout& x = c.l[0];
  const int d = c.to.dim;
  const std::int64_t zero[max_rank]{};
  detail::assemble<T>(c, {0, x.global[d]}, c.l[result].origin[d], zero, x.ext);
  std::int64_t sent = 0;
  for (int r = 0; r < c.ranks; ++r)
    if (r != c.coordinate) sent += halo_part(c.to, x.global[d], c.ranks, c.coordinate, r).size;
  rank.note(c.kind, c.axis, detail::elements_but(x, d) * sent * static_cast<std::int64_t>(sizeof(T)));
}

struct collectives;
// Takes notes in place of a rank.
struct account {
  using collectives = fake::collectives;
  std::int64_t bytes = 0;
  void note(transition, int, std::int64_t more) { bytes += more; }
};

struct collectives {
#define SHARDWISE_COLLECTIVE(function)              \
  template <class T, class Rank>                    \
  static void function(const call& c, Rank& rank) { \
    fake::function<T>(c, rank);                     \
  }
  SHARDWISE_COLLECTIVE(all_reduce)
  SHARDWISE_COLLECTIVE(reduce_scatter)
  SHARDWISE_COLLECTIVE(all_gather)
  SHARDWISE_COLLECTIVE(all_to_all)
  SHARDWISE_COLLECTIVE(resplit)
  SHARDWISE_COLLECTIVE(exchange_halo)
#undef SHARDWISE_COLLECTIVE
  // One entry of the log: the bytes of all members.
  template <class T, class Rank>
  static void batch(const call* c, int n, Rank& rank) {
    account all;
    for (int k = 0; k < n; ++k) {
      call alone = c[k];
      alone.members = 1;
      runtime::communicate<T>(alone, all);
    }
    rank.note(c->kind, c->axis, all.bytes);
  }
};

}  // namespace shardwise::inline v0_1::fake
