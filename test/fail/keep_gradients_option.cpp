// SPDX-License-Identifier: Apache-2.0
// An option of another element.
// expect: keep_gradients: an option given is none of its options
// expect(text): keep_gradients<average_gradients>
#include <small_step.hpp>

template <class... Entries>
using step = sw::train_step<one_linear, mean_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::keep_gradients<sw::average_gradients>>::peak_bytes;
#else
constexpr auto bytes = step<sw::keep_gradients<>>::peak_bytes;
#endif
