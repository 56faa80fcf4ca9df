// SPDX-License-Identifier: Apache-2.0
// All host kernels, one struct per operation over local blocks. The rule proofs run this very code on exact integers.
#pragma once

#include <shardwise/runtime/host/kernels/block.hpp>
#include <shardwise/runtime/host/kernels/elementwise.hpp>
#include <shardwise/runtime/host/kernels/fused.hpp>
#include <shardwise/runtime/host/kernels/gather.hpp>
#include <shardwise/runtime/host/kernels/index.hpp>
#include <shardwise/runtime/host/kernels/join.hpp>
#include <shardwise/runtime/host/kernels/pointwise.hpp>
#include <shardwise/runtime/host/kernels/ordering.hpp>
#include <shardwise/runtime/host/kernels/random.hpp>
#include <shardwise/runtime/host/kernels/rows.hpp>
#include <shardwise/runtime/host/kernels/sum.hpp>
#include <shardwise/runtime/host/kernels/update.hpp>
#include <shardwise/runtime/host/kernels/vector_norm.hpp>
