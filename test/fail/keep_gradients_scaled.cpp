// SPDX-License-Identifier: Apache-2.0
// Gradients kept from run to run under a scale that each run adjusts.
// expect: plan: keep_gradients stands beside a dynamic_loss_scale
// expect(text): give a loss_scale<1024>
#include <small_step.hpp>

template <class... Entries>
using step = sw::train_step<one_linear, mean_task, sw::plan<sw::data_parallel<dp>, sw::keep_gradients<>, Entries...>, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<sw::dynamic_loss_scale<>>::peak_bytes;
#else
constexpr auto bytes = step<sw::loss_scale<1024>>::peak_bytes;
#endif
