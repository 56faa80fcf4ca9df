// SPDX-License-Identifier: Apache-2.0
// Everything that runs on the host: what core.hpp has, eager tensors, and the threads and fake backends.
#pragma once

#include <shardwise/core.hpp>

#include <shardwise/module/add_gradients.hpp>
#include <shardwise/module/eager.hpp>
#include <shardwise/module/eager_gradient.hpp>
#include <shardwise/runtime/eager/create.hpp>
#include <shardwise/runtime/eager/dtensor.hpp>
#include <shardwise/runtime/executor/executor.hpp>
#include <shardwise/runtime/fake/fake.hpp>
#include <shardwise/runtime/host/convolution_library.hpp>

#if SHARDWISE_EXPLAIN
#include <shardwise/io/explanation/programs.hpp>
#endif

#ifndef SHARDWISE_EXTERN_KERNELS  // else linked: provided_kernels.hpp
#include <shardwise/runtime/host/all_kernels.hpp>
#endif
