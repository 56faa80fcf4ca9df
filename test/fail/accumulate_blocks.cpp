// SPDX-License-Identifier: Apache-2.0
// Rows are split four by four: one rank has eight of twelve, the other four.
// expect: accumulate: dim 0 of an input is split by blocks of several rows, or in strides
// expect(text): accumulate<2>
#include <small_step.hpp>

template <class Task, class... Entries>
using step = sw::train_step<one_linear, Task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
template <class Rows>
struct blocked {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<12, 8>, sw::on<dp, Rows>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<blocked<sw::shard<0, 4>>, sw::accumulate<2>>::peak_bytes;
#else
constexpr auto bytes = step<blocked<sw::shard<0>>, sw::accumulate<2>>::peak_bytes;
#endif
