// SPDX-License-Identifier: Apache-2.0
// scaler_state: what a program with a dynamic loss scale keeps of it from step to step (module/precision.hpp).
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>

#include <shardwise/graph/graph.hpp>

namespace shardwise::inline v0_1 {

// As torch.amp.GradScaler's state, with the steps that were skipped since the states were reset: env.step less these is Adam's number.
struct scaler_state {
  double scale = 0;  // of the next step
  std::int64_t good_steps = 0, skipped_steps = 0;
};

namespace runtime {

// The node of a state of the program's, not of a parameter's; -1: there is none.
template <class Graph>
constexpr int state_of_program(const Graph& g, state_kind which) {
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == op_code::state && attributes_of<leaf_attributes>(g.nodes[i].a).which == which) return i;
  return -1;
}

// Throws where no step could have left such a state.
inline void check_scaler_state(const scaler_state& s) {
  constexpr std::int64_t most = std::int64_t{1} << 24;
  if (!(s.scale > 0 && s.scale - s.scale == 0))
    throw std::invalid_argument("shardwise: set_scaler_state: the scale is " + std::to_string(s.scale) +
                                "; a loss scale is a number above 0, such as 65536");
  if (s.good_steps < 0 || s.good_steps >= most || s.skipped_steps < 0 || s.skipped_steps >= most)
    throw std::invalid_argument("shardwise: set_scaler_state: " + std::to_string(s.good_steps) + " good and " +
                                std::to_string(s.skipped_steps) + " skipped steps are given; both are from 0 to " +
                                std::to_string(most - 1) + ", as scaler_state() gave them");
}

}  // namespace runtime

}  // namespace shardwise::inline v0_1
