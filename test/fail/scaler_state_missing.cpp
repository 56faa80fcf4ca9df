// SPDX-License-Identifier: Apache-2.0
// The state of a dynamic loss scale is asked for, and the scale is a fixed one.
// expect: scaler_state: the program keeps none
#include <shardwise/shardwise.hpp>

#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
#ifdef SHARDWISE_FAIL
using scale = sw::loss_scale<1024>;
#else
using scale = sw::dynamic_loss_scale<1024>;
#endif
using step = sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, sw::mixed<sw::f16>, scale>, mesh>;
double of(sw::executor<step>& run) { return run.scaler_state().scale; }
