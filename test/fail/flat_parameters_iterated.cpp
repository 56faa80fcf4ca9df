// SPDX-License-Identifier: Apache-2.0
// Iterations of a step with flat parameters.
// expect: iterated: the step has flat_parameters

#include <shardwise/module/iterated.hpp>

#include "small_step.hpp"

template <class... Options>
using step = sw::train_step<one_linear, mean_task, sw::plan<sw::fully_shard<dp, Options...>>, mesh, sw::sgd<>>;
#ifdef SHARDWISE_FAIL
using iterations = sw::iterated<step<sw::flat_parameters>>;
#else
using iterations = sw::iterated<step<>>;
#endif
constexpr auto bytes = iterations::peak_bytes;
