// SPDX-License-Identifier: Apache-2.0
// Gradients flow through f16, and nobody says by what the loss is scaled.
// expect: train_step: gradients flow through sw::f16
// located: cast
#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class... Entries>
using step = sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::mixed<sw::f16>>::peak_bytes;
#else
constexpr auto bytes = step<sw::mixed<sw::f16>, sw::loss_scale<1>>::peak_bytes;
#endif
