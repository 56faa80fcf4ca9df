// SPDX-License-Identifier: Apache-2.0
// A dynamic loss scale backs off by three, which would round gradients from then on.
// expect: dynamic_loss_scale: its scale, growth or backoff is not a power of two
// expect(text): dynamic_loss_scale<1024, 2000, 2, 3>
#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class... Entries>
using step = sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::mixed<sw::f16>, sw::dynamic_loss_scale<1024, 2000, 2, 3>>::peak_bytes;
#else
constexpr auto bytes = step<sw::mixed<sw::f16>, sw::dynamic_loss_scale<1024, 2000, 2, 4>>::peak_bytes;
#endif
