// SPDX-License-Identifier: Apache-2.0
// Flat parameters on GPUs.
// expect: fully_shard: flat_parameters are for programs on hosts

#include <shardwise/runtime/cuda/backend.hpp>

#include "small_step.hpp"

template <class... Options>
using step = sw::train_step<one_linear, mean_task, sw::plan<sw::fully_shard<dp, Options...>>, mesh, sw::sgd<>,
                            sw::pipeline<>, float, sw::cuda_backend>;
#ifdef SHARDWISE_FAIL
using tried = step<sw::flat_parameters>;
#else
using tried = step<>;
#endif
constexpr auto bytes = tried::peak_bytes;
