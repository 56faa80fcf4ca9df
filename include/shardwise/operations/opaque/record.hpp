// SPDX-License-Identifier: Apache-2.0
// The records of functions of blocks that nothing looks into, and of what stands for users' own operations, each of which
// has a record of its own (graph/custom.hpp).
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1::operations {

inline constexpr operation opaque = without_rule(operation_kind::computed);
inline constexpr operation custom = without_rule(operation_kind::computed);

// One result of a node with several. Computed with that node, so computing it again is cheap where that is.
inline constexpr operation getitem =
    without_rule(operation_kind::computed, &writes_nothing, element_rule::any, recomputing::cheap);

}  // namespace shardwise::inline v0_1::operations
