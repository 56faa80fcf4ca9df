// SPDX-License-Identifier: Apache-2.0
// A loss is scaled by a number and by one that the step adjusts.
// expect: plan: loss_scale or reduce_within is given more than once
#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class... Entries>
using step = sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::mixed<sw::f16>, sw::loss_scale<2>, sw::dynamic_loss_scale<>>::peak_bytes;
#else
constexpr auto bytes = step<sw::mixed<sw::f16>, sw::dynamic_loss_scale<>>::peak_bytes;
#endif
