// SPDX-License-Identifier: Apache-2.0
// A plan keeps gradients twice.
// expect: plan: keep_gradients is given more than once
// expect(text): keep_gradients<no_sync>
#include <small_step.hpp>

template <class... Entries>
using step = sw::train_step<one_linear, mean_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::keep_gradients<>, sw::keep_gradients<sw::no_sync>>::peak_bytes;
#else
constexpr auto bytes = step<sw::keep_gradients<sw::no_sync>>::peak_bytes;
#endif
