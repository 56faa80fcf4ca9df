// SPDX-License-Identifier: Apache-2.0
// Flat parameters and an optimizer of matrices.
// expect: fully_shard: muon makes the steps of matrices orthogonal, and flat_parameters has none

#include <shardwise/module/muon.hpp>

#include "small_step.hpp"

template <class... Options>
using step = sw::train_step<one_linear, mean_task, sw::plan<sw::fully_shard<dp, Options...>>, mesh, sw::muon<>>;
#ifdef SHARDWISE_FAIL
using tried = step<sw::flat_parameters>;
#else
using tried = step<>;
#endif
constexpr auto bytes = tried::peak_bytes;
