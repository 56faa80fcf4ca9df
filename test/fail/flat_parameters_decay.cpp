// SPDX-License-Identifier: Apache-2.0
// Flat parameters and an optimizer that decays matrices alone.
// expect: fully_shard: the optimizer decays matrices alone

#include "small_step.hpp"

template <class... Options>
using step = sw::train_step<one_linear, mean_task, sw::plan<sw::fully_shard<dp, Options...>>, mesh, sw::adamw<true>>;
#ifdef SHARDWISE_FAIL
using tried = step<sw::flat_parameters>;
#else
using tried = step<>;
#endif
constexpr auto bytes = tried::peak_bytes;
