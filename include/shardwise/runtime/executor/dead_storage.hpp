// SPDX-License-Identifier: Apache-2.0
// dead_storage: which bytes of an arena nobody reads any more, call by call: executor_checks::poison overwrites them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include <shardwise/runtime/program/call.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::runtime {

class dead_storage {
 public:
  // Before which call each buffer is dead (a wait is none): on this rank it may be shorter than planned; the rest of it is
  // nobody's.
  template <class Graph, class Plan>
  void note(const Graph& g, const Plan& plan, const dynamic_array<call>& calls) {
    const int nodes = g.node_count;
    dynamic_array<bool> dead(static_cast<std::size_t>(nodes), false);
    dies_.clear();
    begin_.assign(1, 0);
    for (std::size_t i = 0; i <= calls.size(); ++i) {
      const int next = i < calls.size() ? calls[i].node : nodes;
      for (int o = 0; o < next; ++o)
        if (plan.owner[o] == o && plan.last_use[o] < next && plan.bytes[o] > 0 && !dead[static_cast<std::size_t>(o)]) {
          dead[static_cast<std::size_t>(o)] = true;
          dies_.push_back({plan.offset[o], plan.bytes[o]});
        }
      begin_.push_back(dies_.size());
    }
  }
  // What has died since the call before call `at`.
  void poison_before(std::byte* arena, std::size_t at) const {
    for (std::size_t k = begin_[at]; k < begin_[at + 1]; ++k)
      std::memset(arena + dies_[k].offset, 0xFF, static_cast<std::size_t>(dies_[k].bytes));
  }

 private:
  struct piece {
    std::int64_t offset, bytes;
  };
  dynamic_array<piece> dies_;
  dynamic_array<std::size_t> begin_;
};

}  // namespace shardwise::inline v0_1::runtime
