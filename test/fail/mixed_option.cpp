// SPDX-License-Identifier: Apache-2.0
// An option of another element of the plan is given to mixed.
// expect: mixed: an option is given that it does not have
// expect(text): average_gradients
#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class... Entries>
using step = sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::mixed<sw::bf16, sw::average_gradients>>::peak_bytes;
#else
constexpr auto bytes = step<sw::mixed<sw::bf16, sw::cast_forward_inputs<true>>>::peak_bytes;
#endif
