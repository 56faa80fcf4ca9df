// SPDX-License-Identifier: Apache-2.0
// A factor for all rows has no rows to cut.
// expect: accumulate: an input has no rows to cut
// expect(text): accumulate<2>
#include <small_step.hpp>

template <class Task, class... Entries>
using step = sw::train_step<one_linear, Task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
struct scaled {
  using inputs = sw::inputs<four_rows, sw::input_tensor<float, sw::shape<>, sw::on<dp, sw::reduced>>>;
  constexpr auto operator()(const auto& m, const auto& x, const auto& factor) const { return sw::mean(m(x) * factor); }
};
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<scaled, sw::accumulate<2>>::peak_bytes;
#else
constexpr auto bytes = step<scaled, sw::accumulate<2, sw::whole_inputs<1>>>::peak_bytes;
#endif
