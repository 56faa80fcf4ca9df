// SPDX-License-Identifier: Apache-2.0
// All host kernels, one struct per operation over local blocks. The rule proofs run this very code on exact integers.
#pragma once

#include <shardwise/operations/contraction/host.hpp>
#include <shardwise/operations/embedding/host.hpp>
#include <shardwise/operations/fill/host.hpp>
#include <shardwise/operations/indexing/host.hpp>
#include <shardwise/operations/join/host.hpp>
#include <shardwise/operations/leaf/host.hpp>
#include <shardwise/operations/loss/host.hpp>
#include <shardwise/operations/movement/host.hpp>
#include <shardwise/operations/norm/host.hpp>
#include <shardwise/operations/opaque/host.hpp>
#include <shardwise/operations/pointwise/host.hpp>
#include <shardwise/operations/reduction/host.hpp>
#include <shardwise/operations/row/host.hpp>
#include <shardwise/operations/update/host.hpp>
#include <shardwise/operations/view/host.hpp>
#include <shardwise/operations/written/host.hpp>
