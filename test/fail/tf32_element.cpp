// SPDX-License-Identifier: Apache-2.0
// A step of doubles asks for products whose factors are rounded to TF32.
// expect: executor: the step's backend computes products by TF32, which float32 alone has, and the step's elements are others
// expect: shardwise::cuda_backend_tf32

#include <shardwise/runtime/cuda/backend.hpp>

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using element = double;
#else
using element = float;
#endif
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::pipeline<>, element, sw::cuda_backend_tf32>;
constexpr bool ok = sw::checked_device_step<step>::ok;
