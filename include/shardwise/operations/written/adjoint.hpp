// SPDX-License-Identifier: Apache-2.0
// What passes write stands behind differentiation.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule fused = unknown;
inline constexpr adjoint_rule part = unknown;
inline constexpr adjoint_rule pack = unknown;
inline constexpr adjoint_rule unpack = unknown;
inline constexpr adjoint_rule room = no_operands;

}  // namespace shardwise::inline v0_1::adjoints
