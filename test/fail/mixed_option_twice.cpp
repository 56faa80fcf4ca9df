// SPDX-License-Identifier: Apache-2.0
// Two types of one output.
// expect: mixed: an option is given twice
// expect(text): output_dtype
#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class... Entries>
using step = sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::mixed<sw::bf16, sw::output_dtype<float>, sw::output_dtype<sw::bf16>>>::peak_bytes;
#else
constexpr auto bytes = step<sw::mixed<sw::bf16, sw::output_dtype<float>>>::peak_bytes;
#endif
