// SPDX-License-Identifier: Apache-2.0
// A dynamic loss scale grows after no steps at all.
// expect: dynamic_loss_scale: its interval is not between 1 and 2^24 steps
// expect(text): dynamic_loss_scale<1024, 0
#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class... Entries>
using step = sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::mixed<sw::f16>, sw::dynamic_loss_scale<1024, 0>>::peak_bytes;
#else
constexpr auto bytes = step<sw::mixed<sw::f16>, sw::dynamic_loss_scale<1024, 1>>::peak_bytes;
#endif
