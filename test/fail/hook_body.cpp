// SPDX-License-Identifier: Apache-2.0
// A hook that works on blocks, in a plan that traces hooks' bodies.
// expect: forward_hooks: a hook's body cannot be called with the module's tensor

#include <shardwise/module/forward_hooks.hpp>

#include "opaque_square.hpp"
#include "small_models.hpp"
#include <shardwise/module/train_step.hpp>

struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(x)); }
};
#ifdef SHARDWISE_FAIL
using hooks = sw::forward_hooks<tp, square, sw::no_hook>;
#else
using hooks = sw::forward_hooks<tp, square, sw::no_hook, sw::hook_bodies::opaque>;
#endif
using step = sw::forward_step<one_linear, task, sw::plan<sw::at<"net", hooks>>, mesh>;
constexpr int nodes = step::program.node_count;
