// SPDX-License-Identifier: Apache-2.0
// A loss is scaled by what is no power of two.
// expect: loss_scale: its factor is not a power of two
// expect(text): 1000
#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class... Entries>
using step = sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::mixed<sw::f16>, sw::loss_scale<1000>>::peak_bytes;
#else
constexpr auto bytes = step<sw::mixed<sw::f16>, sw::loss_scale<1024>>::peak_bytes;
#endif
