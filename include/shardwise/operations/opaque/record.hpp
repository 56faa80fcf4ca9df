// SPDX-License-Identifier: Apache-2.0
// The records of functions of blocks that nothing looks into, and of what stands for users' own operations, each of which
// has a record of its own (graph/custom.hpp).
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::operations {

inline constexpr operation opaque = without_rule(operation_kind::computed);
inline constexpr operation custom = without_rule(operation_kind::computed);

}  // namespace shardwise::operations
