// SPDX-License-Identifier: Apache-2.0
// Adjoints of what has no operands: none.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule input = no_operands;
inline constexpr adjoint_rule param = no_operands;
inline constexpr adjoint_rule state = no_operands;
inline constexpr adjoint_rule module_buffer = no_operands;
inline constexpr adjoint_rule fill = no_operands;
inline constexpr adjoint_rule arange = no_operands;
inline constexpr adjoint_rule rand = no_operands;
inline constexpr adjoint_rule randn = no_operands;
inline constexpr adjoint_rule bernoulli = no_derivative;

}  // namespace shardwise::inline v0_1::adjoints
