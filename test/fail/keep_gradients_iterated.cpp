// SPDX-License-Identifier: Apache-2.0
// Updates of a step that keeps gradients are moved into the next iteration.
// expect: iterated: the step keeps gradients from run to run

#include <shardwise/module/iterated.hpp>

#include "small_step.hpp"

template <class... Entries>
using step = sw::train_step<one_linear, mean_task, sw::plan<sw::data_parallel<dp>, Entries...>, mesh, sw::sgd<>>;
#ifdef SHARDWISE_FAIL
using iterations = sw::iterated<step<sw::keep_gradients<>>>;
#else
using iterations = sw::iterated<step<>>;
#endif
constexpr auto bytes = iterations::peak_bytes;
