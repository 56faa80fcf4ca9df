// SPDX-License-Identifier: Apache-2.0
// launch_ranges: NVTX ranges around the launches of a program, by module path, for profilers.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nvtx3/nvToolsExt.h>

#include <shardwise/graph/text/render.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::cuda {

// Where switched on, every launch lies in the range of its module, "blocks.3.fc", and in that of its node, "einsum_7"; where off,
// nothing is called. Price of a launch under a profiler: two ranges; else two calls through null pointers.
class launch_ranges {
 public:
  template <class Graph>
  void name(const Graph& g) {
    nodes_ = node_names(g);
    modules_.clear();
    for (int i = 0; i < g.node_count; ++i) modules_.push_back(module_path(g, g.nodes[i].scope));
  }
  bool on() const { return !nodes_.empty(); }
  void clear() { nodes_.clear(); }

  // The ranges of node `id`, while it exists.
  class range {
   public:
    range(const launch_ranges& of, int id)
        : open_(of.on()), inner_(open_ && !of.modules_[static_cast<std::size_t>(id)].empty()) {
      if (inner_) nvtxRangePushA(of.modules_[static_cast<std::size_t>(id)].c_str());
      if (open_) nvtxRangePushA(of.nodes_[static_cast<std::size_t>(id)].c_str());
    }
    ~range() {
      if (open_) nvtxRangePop();
      if (inner_) nvtxRangePop();
    }
    range(const range&) = delete;
    range& operator=(const range&) = delete;

   private:
    bool open_, inner_;
  };

 private:
  std::vector<std::string> nodes_, modules_;
};

}  // namespace shardwise::inline v0_1::cuda
