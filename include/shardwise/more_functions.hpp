// SPDX-License-Identifier: Apache-2.0
// Functions of tensors that not every program calls, with their kernels on hosts, beside shardwise.hpp: no other program reads them.
// On GPUs: more_functions.cuh, in one CUDA source.
#pragma once

#include <shardwise/graph/functions/einsum.hpp>
#include <shardwise/graph/functions/logical.hpp>
#include <shardwise/module/kv_cache.hpp>
#include <shardwise/module/norm_layers.hpp>
#include <shardwise/operations/activation/host.hpp>
#include <shardwise/operations/cache/host.hpp>
#include <shardwise/operations/channel_norm/host.hpp>
#include <shardwise/operations/interpolation/host.hpp>
#include <shardwise/operations/loss/host_more.hpp>
#include <shardwise/operations/scan/host.hpp>
#include <shardwise/shardwise.hpp>
