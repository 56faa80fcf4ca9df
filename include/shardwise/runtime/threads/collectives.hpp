// SPDX-License-Identifier: Apache-2.0
// Collectives of the threads backend: direct exchange through shared memory, reductions in rank order, so that a run is
// bitwise reproducible. Every byte that lands in another rank's memory is counted where it is copied.
#pragma once

#include <cstring>
#include <type_traits>

#include <shardwise/runtime/host/collective_blocks.hpp>
#include <shardwise/runtime/host/copy_block.hpp>
#include <shardwise/runtime/threads/threads.hpp>

namespace shardwise::inline v0_1::threads {

using runtime::call;
using runtime::layout;
using runtime::result;

namespace detail {

// The only routine that writes into a peer's memory.
template <class T, class Rank>
void send_block(Rank& rank, const call& c, int to, const T* x, const layout& lx, const std::int64_t* x_begin, T* o,
                const layout& lo, const std::int64_t* o_begin, const std::int64_t* ext) {
  host::copy_block<T>(x, lx, x_begin, o, lo, o_begin, ext);
  if (to == c.coordinate) return;
  std::int64_t n = static_cast<std::int64_t>(sizeof(T));
  for (int d = 0; d < lx.rank; ++d) n *= ext[d];
  rank.count_written(c.axis, n);
}

}  // namespace detail

// Reduce-scatter over equal flat chunks into the owners' inboxes, sum in rank order, all-gather. Three meetings.
template <class T, class Rank>
void all_reduce(const call& c, Rank& rank) {
  auto& g = rank.group(c.axis);
  const int n = c.ranks, me = c.coordinate;
  const std::int64_t total = c.l[0].numel();
  const T* const mine = static_cast<const T*>(c.p[0]);
  g.member[static_cast<unsigned>(me)] = {mine, c.p[result], c.workspace, nullptr};
  const interval own = split({0, total}, 1, n, me);
  const std::int64_t zero[max_rank]{};
  g.gate.wait(rank.place());
  for (int step = 0; step < n; ++step) {
    const int to = (me + step) % n;
    const interval part = split({0, total}, 1, n, to);
    if (part.size == 0) continue;
    const layout l = runtime::flat_layout(part.size);
    detail::send_block<T>(rank, c, to, mine + part.begin, l, zero,
                          static_cast<T*>(g.member[static_cast<unsigned>(to)].inbox) + me * part.size, l, zero, l.ext);
  }
  g.gate.finish();
  T* const inbox = static_cast<T*>(c.workspace);
  const reduction op = c.from.op;
  runtime::begin_reduction(c.from, inbox, own.size * n);
  for (int r = 1; r < n; ++r) {
    const T* const other = inbox + r * own.size;
    if (op == reduction::sum) {
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < own.size; ++i) inbox[i] = inbox[i] + other[i];
    } else {
      for (std::int64_t i = 0; i < own.size; ++i) inbox[i] = runtime::combine(op, inbox[i], other[i]);
    }
  }
  runtime::end_reduction(c.from, inbox, own.size, n);
  if (own.size > 0) {
    const layout l = runtime::flat_layout(own.size);
    for (int step = 0; step < n; ++step) {
      const int to = (me + step) % n;
      detail::send_block<T>(rank, c, to, inbox, l, zero,
                            static_cast<T*>(g.member[static_cast<unsigned>(to)].target) + own.begin, l, zero, l.ext);
    }
  }
  g.gate.finish();
}

// Each rank writes its block into every rank's result. What is sent to one rank, whose result lies at `target`, apart: batches
// send so, too.
template <class T, class Rank>
void send_gathered(const call& c, Rank& rank, int to, T* target) {
  const int d = c.from.dim;
  const std::int64_t zero[max_rank]{};
  std::int64_t begin[max_rank]{};
  begin[d] = c.l[0].origin[d] - c.l[result].origin[d];
  if (c.l[0].numel() > 0)
    detail::send_block<T>(rank, c, to, static_cast<const T*>(c.p[0]), c.l[0], zero, target, c.l[result], begin, c.l[0].ext);
}
template <class T, class Rank>
void all_gather(const call& c, Rank& rank) {
  auto& g = rank.group(c.axis);
  const int n = c.ranks, me = c.coordinate;
  g.member[static_cast<unsigned>(me)] = {c.p[0], c.p[result], nullptr, nullptr};
  g.gate.wait(rank.place());
  for (int step = 0; step < n; ++step) {
    const int to = (me + step) % n;
    send_gathered<T>(c, rank, to, static_cast<T*>(g.member[static_cast<unsigned>(to)].target));
  }
  g.gate.finish();
}

// Each rank writes the part that every other rank owns into that rank's inbox; owners sum in rank order.
template <class T, class Rank>
void reduce_scatter(const call& c, Rank& rank) {
  auto& g = rank.group(c.axis);
  const int n = c.ranks, me = c.coordinate, d = c.to.dim;
  const layout& x = c.l[0];
  g.member[static_cast<unsigned>(me)] = {c.p[0], nullptr, c.workspace, nullptr};
  g.gate.wait(rank.place());
  const std::int64_t zero[max_rank]{};
  for (int step = 0; step < n; ++step) {
    const int to = (me + step) % n;
    const interval part = split({0, x.ext[d]}, c.to.block, n, to);
    const layout theirs = runtime::with_extent(x, d, part.size);
    if (theirs.numel() == 0) continue;
    std::int64_t begin[max_rank]{};
    begin[d] = part.begin;
    detail::send_block<T>(rank, c, to, static_cast<const T*>(c.p[0]), x, begin,
                          static_cast<T*>(g.member[static_cast<unsigned>(to)].inbox) + me * theirs.numel(), theirs, zero,
                          theirs.ext);
  }
  g.gate.finish();
  const std::int64_t own = c.l[result].numel();
  T* const inbox = static_cast<T*>(c.workspace);
  T* const out = static_cast<T*>(c.p[result]);
  runtime::begin_reduction(c.from, inbox, own * n);
  for (std::int64_t i = 0; i < own; ++i) out[i] = inbox[i];
  const reduction op = c.from.op;
  for (int r = 1; r < n; ++r)
    for (std::int64_t i = 0; i < own; ++i) out[i] = runtime::combine(op, out[i], inbox[r * own + i]);
  runtime::end_reduction(c.from, out, own, n);
}

// From shards of one dim to shards of another: each rank writes the crossing of its rows and the others' columns.
template <class T, class Rank>
void send_crossing(const call& c, Rank& rank, int to, T* target) {
  const int from = c.from.dim, to_dim = c.to.dim;
  const layout& x = c.l[0];
  const interval part = split({0, x.ext[to_dim]}, c.to.block, c.ranks, to);
  const layout theirs = runtime::with_extent(c.l[result], to_dim, part.size);
  std::int64_t ext[max_rank]{}, x_begin[max_rank]{}, o_begin[max_rank]{};
  for (int d = 0; d < x.rank; ++d) ext[d] = x.ext[d];
  ext[to_dim] = part.size;
  x_begin[to_dim] = part.begin;
  o_begin[from] = x.origin[from] - c.l[result].origin[from];
  for (int d = 0; d < x.rank; ++d)
    if (ext[d] == 0) return;
  detail::send_block<T>(rank, c, to, static_cast<const T*>(c.p[0]), x, x_begin, target, theirs, o_begin, ext);
}
template <class T, class Rank>
void all_to_all(const call& c, Rank& rank) {
  auto& g = rank.group(c.axis);
  const int n = c.ranks, me = c.coordinate;
  g.member[static_cast<unsigned>(me)] = {c.p[0], c.p[result], nullptr, nullptr};
  g.gate.wait(rank.place());
  for (int step = 0; step < n; ++step) {
    const int to = (me + step) % n;
    send_crossing<T>(c, rank, to, static_cast<T*>(g.member[static_cast<unsigned>(to)].target));
  }
  g.gate.finish();
}

// From shards of one dim to shards of it with other boundaries: each rank writes what its block shares with the others'.
template <class T, class Rank>
void send_common(const call& c, Rank& rank, int to, T* target, const layout& theirs) {
  const int d = c.to.dim;
  const layout& x = c.l[0];
  const std::int64_t end = x.origin[d] + x.ext[d], their_end = theirs.origin[d] + theirs.ext[d];
  const std::int64_t lo = x.origin[d] > theirs.origin[d] ? x.origin[d] : theirs.origin[d];
  const std::int64_t hi = end < their_end ? end : their_end;
  if (x.numel() == 0 || lo >= hi) return;
  std::int64_t ext[max_rank]{}, x_begin[max_rank]{}, o_begin[max_rank]{};
  for (int k = 0; k < x.rank; ++k) ext[k] = x.ext[k];
  ext[d] = hi - lo;
  x_begin[d] = lo - x.origin[d];
  o_begin[d] = lo - theirs.origin[d];
  detail::send_block<T>(rank, c, to, static_cast<const T*>(c.p[0]), x, x_begin, target, theirs, o_begin, ext);
}
template <class T, class Rank>
void resplit(const call& c, Rank& rank) {
  auto& g = rank.group(c.axis);
  const int n = c.ranks, me = c.coordinate;
  g.member[static_cast<unsigned>(me)] = {c.p[0], c.p[result], nullptr, &c.l[result]};
  g.gate.wait(rank.place());
  for (int step = 0; step < n; ++step) {
    const int to = (me + step) % n;
    const exhibit& peer = g.member[static_cast<unsigned>(to)];
    send_common<T>(c, rank, to, static_cast<T*>(peer.target), *static_cast<const layout*>(peer.info));
  }
  g.gate.finish();
}

// From shards of a dim to overlapping ones of it.
template <class T, class Rank>
void exchange_halo(const call& c, Rank& rank) {
  resplit<T>(c, rank);
}

// A batch: each rank shows its calls, and all members are exchanged between one meeting and the next, so that a batch of many
// costs the meetings of one. Reductions are fetched, not sent: every rank combines its part of what the others show, in rank
// order, where its result lies; so no member needs an inbox. What is fetched is counted for the rank that it is fetched from.
template <class T, class Rank, class Group>
struct batch_exchange {
  const call* c;
  int n;
  Rank& rank;
  Group& g;

  const call* calls_of(int peer) const { return static_cast<const call*>(g.member[static_cast<unsigned>(peer)].info); }
  void fetched_from(int peer, std::int64_t elements) const {
    if (peer != c->coordinate)
      static_cast<Rank*>(g.member[static_cast<unsigned>(peer)].inbox)
          ->count_written(c->axis, elements * static_cast<std::int64_t>(sizeof(T)));
  }

  // o = x_0 op x_1 op ... , where x_r is what rank r shows of the block `l` that begins at `at`, and o is dense.
  void combine(int member, std::int64_t at, const layout& l, T* o) const {
    const placement& by = c[member].from;
    const std::int64_t total = l.numel(), last = l.rank - 1, row = l.rank > 0 ? l.ext[last] : 1;
    const std::int64_t step = l.rank > 0 ? l.str[last] : 1;
    for (int r = 0; r < c->ranks; ++r) {
      const T* const x = static_cast<const T*>(calls_of(r)[member].p[0]) + at;
      std::int64_t index[max_rank]{};
      for (std::int64_t done = 0; done < total; done += row) {
        std::int64_t from = 0;
        for (int d = 0; d < last; ++d) from += index[d] * l.str[d];
        add_row(by, r == 0, x + from, step, o + done, row);
        for (int d = static_cast<int>(last) - 1; d >= 0 && ++index[d] == l.ext[d]; --d) index[d] = 0;
      }
      fetched_from(r, total);
    }
    runtime::end_reduction(by, o, total, c->ranks);
  }
  static void add_row(const placement& by, bool first, const T* x, std::int64_t step, T* o, std::int64_t n) {
    const auto each = [&](auto&& value) {
      if (first)
        for (std::int64_t i = 0; i < n; ++i) o[i] = value(x[i * step]);
      else if (by.op == reduction::sum && step == 1)
        for (std::int64_t i = 0; i < n; ++i) o[i] = o[i] + value(x[i]);
      else
        for (std::int64_t i = 0; i < n; ++i) o[i] = runtime::combine(by.op, o[i], value(x[i * step]));
    };
    if constexpr (std::is_floating_point_v<T>)
      if (by.is_norm()) return each([&](T v) { return host::norm_math<T>::power(v, by.order()); });
    each([](T v) { return v; });
  }

  void scatter_sums() const {
    for (int k = 0; k < n; ++k) {
      layout part = c[k].l[0];
      const int d = c[k].to.dim;
      const interval own = split({0, part.ext[d]}, c[k].to.block, c[k].ranks, c[k].coordinate);
      const bool flat = d == 0 && is_dense(part);
      part.ext[d] = own.size;
      combine(k, own.begin * part.str[d], flat ? runtime::flat_layout(part.numel()) : part, static_cast<T*>(c[k].p[result]));
    }
  }
  static bool is_dense(const layout& l) {
    layout dense = l;
    dense.make_dense();
    bool same = true;
    for (int d = 0; d < l.rank; ++d) same = same && dense.str[d] == l.str[d];
    return same;
  }
  // Sums of equal flat chunks, and when all are there, each rank's chunk to all.
  void sum() const {
    const auto own = [&](int k) { return split({0, c[k].l[0].numel()}, 1, c[k].ranks, c[k].coordinate); };
    for (int k = 0; k < n; ++k)
      combine(k, own(k).begin, runtime::flat_layout(own(k).size), static_cast<T*>(c[k].p[result]) + own(k).begin);
    g.gate.finish();
    const std::int64_t zero[max_rank]{};
    to_all([&](int k, int to) {
      const interval part = own(k);
      const layout l = runtime::flat_layout(part.size);
      if (part.size > 0 && to != c[k].coordinate)
        detail::send_block<T>(rank, c[k], to, static_cast<const T*>(c[k].p[result]) + part.begin, l, zero,
                              target(to, k) + part.begin, l, zero, l.ext);
    });
  }

  T* target(int to, int member) const { return static_cast<T*>(calls_of(to)[member].p[result]); }
  template <class F>
  void to_all(F&& f) const {
    for (int step = 0; step < c->ranks; ++step)
      for (int k = 0; k < n; ++k) f(k, (c->coordinate + step) % c->ranks);
  }
  void run() const {
    switch (c->kind) {
      case transition::all_reduce: return sum();
      case transition::reduce_scatter: return scatter_sums();
      case transition::all_gather: return to_all([&](int k, int to) { send_gathered<T>(c[k], rank, to, target(to, k)); });
      case transition::all_to_all:
      case transition::exchange_halo:
        return to_all([&](int k, int to) {
          if (c[k].from.dim == c[k].to.dim) send_common<T>(c[k], rank, to, target(to, k), calls_of(to)[k].l[result]);
          else send_crossing<T>(c[k], rank, to, target(to, k));
        });
      case transition::none:
      case transition::take_chunk:
      case transition::to_partial:
      case transition::place_chunk: runtime::not_a_collective(c->kind);
    }
  }
};
template <class T, class Rank>
void batch(const call* c, int n, Rank& rank) {
  auto& g = rank.group(c->axis);
  g.member[static_cast<unsigned>(c->coordinate)] = {nullptr, nullptr, &rank, c};
  g.gate.wait(rank.place());
  batch_exchange<T, Rank, std::remove_reference_t<decltype(g)>>{c, n, rank, g}.run();
  g.gate.finish();
}

namespace detail {

inline activity activity_of(const call& c) {
  return {c.kind == transition::all_reduce       ? "an all-reduce"
          : c.kind == transition::all_gather     ? "an all-gather"
          : c.kind == transition::reduce_scatter ? "a reduce-scatter"
          : c.kind == transition::exchange_halo  ? "an exchange of halos"
                                                 : "an all-to-all",
          c.axis, c.node};
}
[[noreturn]] __attribute__((noinline)) inline void rethrow_waiting(const call& c, int who, int waiting) {
  throw rank_returned(who, waiting, activity_of(c).text().c_str());
}

}  // namespace detail

// What ranks exchange. A rank that waits for one that has returned says in which collective.
struct collectives {
#define SHARDWISE_COLLECTIVE(function)                  \
  template <class T, class Rank>                        \
  static void function(const call& c, Rank& rank) {     \
    rank.place().does(detail::activity_of(c));          \
    try {                                               \
      threads::function<T>(c, rank);                    \
    } catch (const rank_returned& e) {                  \
      detail::rethrow_waiting(c, e.rank, rank.index()); \
    }                                                   \
    rank.sent();                                        \
  }
  SHARDWISE_COLLECTIVE(all_reduce)
  SHARDWISE_COLLECTIVE(reduce_scatter)
  SHARDWISE_COLLECTIVE(all_gather)
  SHARDWISE_COLLECTIVE(all_to_all)
  SHARDWISE_COLLECTIVE(resplit)
  SHARDWISE_COLLECTIVE(exchange_halo)
#undef SHARDWISE_COLLECTIVE
  template <class T, class Rank>
  static void batch(const call* c, int n, Rank& rank) {
    rank.place().does(detail::activity_of(*c));
    try {
      threads::batch<T>(c, n, rank);
    } catch (const rank_returned& e) {
      detail::rethrow_waiting(*c, e.rank, rank.index());
    }
    rank.sent();
  }
};

}  // namespace shardwise::inline v0_1::threads
