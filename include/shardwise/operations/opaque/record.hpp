// SPDX-License-Identifier: Apache-2.0
// The record of functions of blocks that nothing looks into.
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::operations {

inline constexpr operation opaque = without_rule(operation_kind::computed);

}  // namespace shardwise::operations
