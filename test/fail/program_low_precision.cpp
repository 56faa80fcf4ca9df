// SPDX-License-Identifier: Apache-2.0
// Parameters are to be stored, and updated, in bf16.
// expect: program: parameters and optimizer states are to be stored in elements of two bytes
// expect(text): bfloat16
#include <small_step.hpp>

// Its loss is computed in float.
struct wide_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};

template <class T, class... Entries>
using step =
    sw::train_step<one_linear, wide_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh, sw::adam<>, sw::pipeline<>, T>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::bf16>::peak_bytes;
#else
constexpr auto bytes = step<float, sw::mixed<sw::bf16>>::peak_bytes;
#endif
