// SPDX-License-Identifier: Apache-2.0
// Everything that runs on the host: what core.hpp has, eager tensors, and the threads and fake backends.
#pragma once

#include <shardwise/core.hpp>

#include <shardwise/module/add_gradients.hpp>
#include <shardwise/module/eager.hpp>
#include <shardwise/module/eager_gradient.hpp>
#include <shardwise/operations/attention/host.hpp>
#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/operations/extreme/host.hpp>
#include <shardwise/operations/pooling/host.hpp>
#include <shardwise/operations/rotary/host.hpp>
#include <shardwise/runtime/eager/create.hpp>
#include <shardwise/runtime/eager/dtensor.hpp>
#include <shardwise/runtime/executor/executor.hpp>
#include <shardwise/runtime/fake/fake.hpp>
