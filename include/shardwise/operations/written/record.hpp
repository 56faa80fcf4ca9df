// SPDX-License-Identifier: Apache-2.0
// Records of what only passes write after differentiation; verify checks them by the rules of their parts.
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1::operations {

inline constexpr operation fused = without_rule(operation_kind::computed);
inline constexpr operation room = without_rule(operation_kind::source);
inline constexpr operation part = without_rule(operation_kind::view);
inline constexpr operation pack = without_rule(operation_kind::computed);
inline constexpr operation unpack = without_rule(operation_kind::view);

}  // namespace shardwise::inline v0_1::operations
