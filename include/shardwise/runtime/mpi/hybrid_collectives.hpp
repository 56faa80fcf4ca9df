// SPDX-License-Identifier: Apache-2.0
// Collectives of ranks that are threads of several processes: along an axis within the process the threads backend's, along the others the
// mpi backend's. Both reduce in rank order, so the bits are those of as many threads.
#pragma once

#include <shardwise/runtime/mpi/collectives.hpp>
#include <shardwise/runtime/mpi/hybrid_rank.hpp>
#include <shardwise/runtime/threads/collectives.hpp>

namespace shardwise::inline v0_1::mpi {

struct hybrid_collectives {
  template <class T, class Rank>
  static void batch(const call* c, int n, Rank& rank) {
    if (!Rank::is_within(c->axis)) return collectives::batch<T>(c, n, rank);
    begin(*c, rank);
    threads::batch<T>(c, n, rank);
  }
#define SHARDWISE_COLLECTIVE(function)                                      \
  template <class T, class Rank>                                            \
  static void function(const call& c, Rank& rank) {                         \
    if (!Rank::is_within(c.axis)) return collectives::function<T>(c, rank); \
    begin(c, rank);                                                         \
    threads::function<T>(c, rank);                                          \
  }
  SHARDWISE_COLLECTIVE(all_reduce)
  SHARDWISE_COLLECTIVE(reduce_scatter)
  SHARDWISE_COLLECTIVE(all_gather)
  SHARDWISE_COLLECTIVE(all_to_all)
  SHARDWISE_COLLECTIVE(resplit)
  SHARDWISE_COLLECTIVE(exchange_halo)
#undef SHARDWISE_COLLECTIVE

 private:
  template <class Rank>
  static void begin(const call& c, Rank& rank) {
    rank.begins(c.axis, threads::detail::activity_of(c).name);
  }
};

}  // namespace shardwise::inline v0_1::mpi
