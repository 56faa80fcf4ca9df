// SPDX-License-Identifier: Apache-2.0
// A module is to compute in integers.
// expect: mixed: an element type is given that is no floating-point number
// expect(text): std::int32_t
#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class... Entries>
using step = sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::mixed<std::int32_t>>::peak_bytes;
#else
constexpr auto bytes = step<sw::mixed<sw::bf16>>::peak_bytes;
#endif
