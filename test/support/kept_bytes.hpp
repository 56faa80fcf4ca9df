// SPDX-License-Identifier: Apache-2.0
// What a step keeps of its forward pass for its backward pass.
#pragma once

#include <shardwise/shardwise.hpp>

namespace test {

namespace sw = shardwise;

// What is live when the backward pass begins, inputs and parameters aside.
template <class Step>
constexpr std::int64_t kept_for_backward() {
  const auto& g = Step::program;
  const auto& plan = Step::memory::value;
  sw::passes::phase_marks<std::remove_cvref_t<decltype(g)>::node_capacity> marks;
  sw::passes::mark_phases(marks, g);
  int begin = 0;
  while (marks.of(begin) == sw::program_phase::forward || sw::is_leaf(g.nodes[begin].op)) ++begin;
  std::int64_t bytes = 0;
  for (int i = 0; i < begin; ++i)
    if (!sw::is_leaf(g.nodes[i].op) && plan.owner[i] == i && plan.last_use[i] > begin) bytes += plan.bytes[i];
  return bytes;
}

}  // namespace test
