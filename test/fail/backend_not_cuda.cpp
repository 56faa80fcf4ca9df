// SPDX-License-Identifier: Apache-2.0
// A step planned for the host's kernels is given to a rank on a GPU.
// expect: executor: the step's memory is planned for the host's kernels, and this rank is a GPU
// expect: shardwise::host_backend

#include <shardwise/runtime/cuda/backend.hpp>

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::pipeline<>, float, sw::host_backend>;
#else
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::pipeline<>, float, sw::cuda_backend>;
#endif
constexpr bool ok = sw::checked_device_step<step>::ok;
