// SPDX-License-Identifier: Apache-2.0
// A task whose list of inputs has another name.
// expect: program: there is no list of inputs
// expect: using inputs = sw::inputs<...>
// expect(g++): unfed
// expect(clang): unfed

#include "small_step.hpp"

struct unfed {
  using input = mean_task::inputs;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, unfed, plan, mesh, sw::adam<>>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;
#endif
constexpr int parameters = step::parameter_total;
