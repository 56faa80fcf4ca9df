// SPDX-License-Identifier: Apache-2.0
// The kernels that programs on the host run, with their table: written here, or, with SHARDWISE_EXTERN_KERNELS, declared here and
// linked.
#pragma once

#include <shardwise/runtime/host/kernel_table.hpp>

#ifdef SHARDWISE_EXTERN_KERNELS
#include <shardwise/runtime/host/extern_kernels.hpp>
#else
#include <shardwise/runtime/host/kernels.hpp>
#endif
