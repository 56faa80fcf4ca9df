// SPDX-License-Identifier: Apache-2.0
// A step whose backend computes products in float is tuned by a table of products that were rounded to TF32.
// expect: pipeline: this pass decides by times of products whose factors were rounded to TF32, and the backend does not round them, or
// expect: shardwise::cuda_backend

#include <shardwise/pass/tune/tuned.hpp>
#include <shardwise/runtime/cuda/backend.hpp>

#include "small_step.hpp"

#ifdef SHARDWISE_FAIL
using table = sw::h200_tf32;
#else
using table = sw::h200;
#endif
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, sw::tuned<table>, float, sw::cuda_backend>;
constexpr bool ok = sw::checked_device_step<step>::ok;
