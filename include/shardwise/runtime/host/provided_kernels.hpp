// SPDX-License-Identifier: Apache-2.0
// The kernels that programs on the host run: written here, or, with SHARDWISE_EXTERN_KERNELS, declared here and linked.
#pragma once

#ifdef SHARDWISE_EXTERN_KERNELS
#include <shardwise/runtime/host/extern_kernels.hpp>
#else
#include <shardwise/runtime/host/kernels.hpp>
#endif
