// SPDX-License-Identifier: Apache-2.0
// The kernels of every program: the library's list, and those of the umbrella's operations that are made like users' own. What
// more_functions.hpp adds brings its own.
#pragma once

#include <shardwise/operations/attention/host.hpp>
#include <shardwise/operations/convolution/host.hpp>
#include <shardwise/operations/extreme/host.hpp>
#include <shardwise/operations/pooling/host.hpp>
#include <shardwise/operations/rotary/host.hpp>
#include <shardwise/runtime/host/kernels.hpp>
