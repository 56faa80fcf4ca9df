// SPDX-License-Identifier: Apache-2.0
// The loss is a mean of elements of two bytes.
// expect: train_step: the loss is stored in elements of two bytes
// located: sum
#include <small_step.hpp>

template <class... Options>
using step = sw::train_step<one_linear, mean_task, sw::plan<sw::data_parallel<dp>, sw::mixed<sw::bf16, Options...>>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<>::peak_bytes;
#else
constexpr auto bytes = step<sw::output_dtype<float>>::peak_bytes;
#endif
