// SPDX-License-Identifier: Apache-2.0
// A task that takes one tensor more than its inputs list.
// expect: task: it cannot be called with the model and one tensor for each entry of its inputs
// expect: one after the model for each
// expect(g++): \bpair\b
// expect(clang): \bpair\b

#include "small_step.hpp"

struct pair : mean_task {
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const { return sw::mean(model(x) - y); }
};

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, pair, plan, mesh, sw::adam<>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;
#endif
constexpr int parameters = step::parameter_total;
