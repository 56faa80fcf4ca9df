// SPDX-License-Identifier: Apache-2.0
// wanted: a step with fused kernels
// mistake: the pass stands where the pipeline belongs
// names: fuse_kernels
// names: pipeline
// names: pipeline<
#include <shardwise/pass/fuse/fuse.hpp>
#include "mlp.hpp"

#ifdef SHARDWISE_FAIL
using fused = sw::train_step<mlp, task, plan, mesh, sw::adam<>, sw::fuse_kernels>;
#else
using fused = sw::train_step<mlp, task, plan, mesh, sw::adam<>, sw::pipeline<sw::fuse_kernels>>;
#endif
static_assert(fused::peak_bytes > 0);
