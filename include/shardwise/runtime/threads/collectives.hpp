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
  g.gate.wait();
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

// Each rank writes its block into every rank's result.
template <class T, class Rank>
void all_gather(const call& c, Rank& rank) {
  auto& g = rank.group(c.axis);
  const int n = c.ranks, me = c.coordinate, d = c.from.dim;
  g.member[static_cast<unsigned>(me)] = {c.p[0], c.p[result], nullptr, nullptr};
  g.gate.wait();
  const std::int64_t zero[max_rank]{};
  std::int64_t begin[max_rank]{};
  begin[d] = c.l[0].origin[d] - c.l[result].origin[d];
  if (c.l[0].numel() > 0)
    for (int step = 0; step < n; ++step) {
      const int to = (me + step) % n;
      detail::send_block<T>(rank, c, to, static_cast<const T*>(c.p[0]), c.l[0], zero,
                            static_cast<T*>(g.member[static_cast<unsigned>(to)].target), c.l[result], begin, c.l[0].ext);
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
  g.gate.wait();
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
void all_to_all(const call& c, Rank& rank) {
  auto& g = rank.group(c.axis);
  const int n = c.ranks, me = c.coordinate, from = c.from.dim, to_dim = c.to.dim;
  const layout& x = c.l[0];
  g.member[static_cast<unsigned>(me)] = {c.p[0], c.p[result], nullptr, nullptr};
  g.gate.wait();
  for (int step = 0; step < n; ++step) {
    const int to = (me + step) % n;
    const interval part = split({0, x.ext[to_dim]}, c.to.block, n, to);
    const layout theirs = runtime::with_extent(c.l[result], to_dim, part.size);
    std::int64_t ext[max_rank]{}, x_begin[max_rank]{}, o_begin[max_rank]{};
    for (int d = 0; d < x.rank; ++d) ext[d] = x.ext[d];
    ext[to_dim] = part.size;
    x_begin[to_dim] = part.begin;
    o_begin[from] = x.origin[from] - c.l[result].origin[from];
    bool empty = false;
    for (int d = 0; d < x.rank; ++d) empty = empty || ext[d] == 0;
    if (empty) continue;
    detail::send_block<T>(rank, c, to, static_cast<const T*>(c.p[0]), x, x_begin,
                          static_cast<T*>(g.member[static_cast<unsigned>(to)].target), theirs, o_begin, ext);
  }
  g.gate.finish();
}

// From shards of one dim to shards of it with other boundaries: each rank writes what its block shares with the others'.
template <class T, class Rank>
void resplit(const call& c, Rank& rank) {
  auto& g = rank.group(c.axis);
  const int n = c.ranks, me = c.coordinate, d = c.to.dim;
  const layout& x = c.l[0];
  g.member[static_cast<unsigned>(me)] = {c.p[0], c.p[result], nullptr, &c.l[result]};
  g.gate.wait();
  for (int step = 0; step < n && x.numel() > 0; ++step) {
    const int to = (me + step) % n;
    const layout& theirs = *static_cast<const layout*>(g.member[static_cast<unsigned>(to)].info);
    const std::int64_t end = x.origin[d] + x.ext[d], their_end = theirs.origin[d] + theirs.ext[d];
    const std::int64_t lo = x.origin[d] > theirs.origin[d] ? x.origin[d] : theirs.origin[d];
    const std::int64_t hi = end < their_end ? end : their_end;
    if (lo >= hi) continue;
    std::int64_t ext[max_rank]{}, x_begin[max_rank]{}, o_begin[max_rank]{};
    for (int k = 0; k < x.rank; ++k) ext[k] = x.ext[k];
    ext[d] = hi - lo;
    x_begin[d] = lo - x.origin[d];
    o_begin[d] = lo - theirs.origin[d];
    detail::send_block<T>(rank, c, to, static_cast<const T*>(c.p[0]), x, x_begin,
                          static_cast<T*>(g.member[static_cast<unsigned>(to)].target), theirs, o_begin, ext);
  }
  g.gate.finish();
}

namespace detail {

[[noreturn]] __attribute__((noinline)) inline void rethrow_waiting(const call& c, int who, int waiting) {
  const char* const kind = c.kind == transition::all_reduce       ? "an all-reduce"
                           : c.kind == transition::all_gather     ? "an all-gather"
                           : c.kind == transition::reduce_scatter ? "a reduce-scatter"
                                                                  : "an all-to-all";
  throw rank_returned(who, waiting, (std::string(kind) + " on axis " + std::to_string(c.axis) + " of the mesh").c_str());
}

}  // namespace detail

// What ranks exchange. A rank that waits for one that has returned says in which collective.
struct collectives {
#define SHARDWISE_COLLECTIVE(function)                  \
  template <class T, class Rank>                        \
  static void function(const call& c, Rank& rank) {     \
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
#undef SHARDWISE_COLLECTIVE
};

}  // namespace shardwise::inline v0_1::threads
