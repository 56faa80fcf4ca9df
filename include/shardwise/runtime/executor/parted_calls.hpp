// SPDX-License-Identifier: Apache-2.0
// parted_calls: which calls of a program a rank's team computes in parts, and their running.
#pragma once

#include <cstddef>
#include <cstdint>

#include <shardwise/runtime/host/kernel_table.hpp>
#include <shardwise/runtime/host/parts.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::runtime {

// Ranks that compute with several threads: see threads::team.
template <class Rank>
concept has_team = requires(Rank& r) { r.team().threads(); };

// Of a rank without a team, nothing.
template <class Rank>
class parted_calls {
 public:
  void forget() {}
  template <class Calls, class Cut>
  void plan(Rank&, const Calls&, std::int64_t, const Cut&) {}
  void run(std::size_t, kernel_function<Rank> kernel, const call& c, const step_env& env, Rank& rank) {
    kernel(c, env, rank);
  }
};

template <has_team Rank>
class parted_calls<Rank> {
 public:
  // The calls have other blocks.
  void forget() { threads_ = 0; }

  // Before a run. Where the team is as it was, one comparison; else how each call is cut, and scratch for the threads.
  // cut(node): of its kernel.
  template <class Calls, class Cut>
  void plan(Rank& rank, const Calls& calls, std::int64_t workspace, const Cut& cut) {
    if (rank.team().threads() == threads_) [[likely]]
      return;
    threads_ = rank.team().threads();
    parts_.clear();
    if (threads_ == 1) return;
    for (const call& c : calls) parts_.push_back(host::parts_of(c, cut(c.node), threads_));
    rank.team().reserve(static_cast<std::size_t>(workspace));
  }

  void run(std::size_t at, kernel_function<Rank> kernel, const call& c, const step_env& env, Rank& rank) {
    if (parts_.empty() || parts_[at].count == 1) return kernel(c, env, rank);
    const job all{kernel, &c, &parts_[at], &env, &rank};
    rank.team().run(&run_part, &all, parts_[at].count);
  }

 private:
  struct job {
    kernel_function<Rank> kernel;
    const call* whole;
    const parts* how;
    const step_env* env;
    Rank* rank;
  };
  static void run_part(const void* of, int part, int thread) {
    const job& j = *static_cast<const job*>(of);
    void* const scratch = thread == 0 ? j.whole->workspace : j.rank->team().scratch(thread);
    j.kernel(host::part_of(*j.whole, *j.how, part, scratch), *j.env, *j.rank);
  }

  int threads_ = 0;  // for which the parts are planned
  dynamic_array<parts> parts_;
};

}  // namespace shardwise::inline v0_1::runtime
