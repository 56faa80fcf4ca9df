// SPDX-License-Identifier: Apache-2.0
// training_state: where in a training step a module is; trace_counts: how often and how much a program's function was traced.
#pragma once

#include <shardwise/graph/calls.hpp>

namespace shardwise::inline v0_1 {

// Of a module or of a group of parameters, as FSDP has it. A module that its forward is computed again for in a backward stays
// pre_backward; post_backward lasts to the end of the backward. Who tells of a running program: tracked_module::state().
enum class training_state : std::uint8_t { idle, forward, pre_backward, post_backward };

// While it exists, `state` is `now`; then it is what it was, however the scope is left. Usable in traces and constants.
class [[nodiscard]] use_training_state {
 public:
  constexpr use_training_state(training_state& state, training_state now) : state_(&state), before_(state) { state = now; }
  constexpr ~use_training_state() { *state_ = before_; }
  use_training_state(const use_training_state&) = delete;
  use_training_state& operator=(const use_training_state&) = delete;

 private:
  training_state* state_;
  training_state before_;
};

// What was traced for a program (a train_step, forward_step, function_step or gradient_step).
//   frames        functions whose trace became a graph: the task, or the function. Whatever one cannot trace whole does not compile,
//                 so that there is one, and no graph breaks
//   graphs        graphs that were made of them for the backend to compile
//   ops           operations recorded, before differentiation and passes: of tensors, not leaves and numbers; writes in place are values by then
//   hook_frames   bodies of a plan's forward_hooks that the trace went into, each time it did
//   opaque_calls  operations that it did not look into, hooks with opaque bodies among them
struct trace_counts {
  int frames = 0, graphs = 0, ops = 0, hook_frames = 0, opaque_calls = 0;
};

template <class Program>
inline constexpr trace_counts trace_counts_of = [] {
  trace_counts c{1, 1, 0, 0, 0};
  using trace = typename Program::trace_type;
  const auto& g = trace::value;
  for (int i = 0; i < g.node_count; ++i) {
    c.ops += g.nodes[i].inputs > 0 ? 1 : 0;
    c.opaque_calls += g.nodes[i].op == op_code::opaque ? 1 : 0;
  }
  if constexpr (requires(call_log& l) { trace::tell(l); }) {
    call_log l;
    trace::tell(l);
    c.hook_frames = l.frame_count;
  }
  return c;
}();

}  // namespace shardwise::inline v0_1
