// SPDX-License-Identifier: Apache-2.0
// No ranks at all may sum.
// expect: reduce_within: the number of ranks is less than 1
// expect(text): 0
#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class... Entries>
using step = sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::reduce_within<0>>::peak_bytes;
#else
constexpr auto bytes = step<sw::reduce_within<1>>::peak_bytes;
#endif
