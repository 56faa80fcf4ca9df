// SPDX-License-Identifier: Apache-2.0
// What nothing looks into has no adjoint; a custom operation has its own (rule_of in autodiff/adjoints.hpp).
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule opaque{.kind = adjoint::refused, .into = every_operand, .most = &at_most<1>,
                                     .pull = [](pullback& p) { p.refuse({problem::opaque_gradient, p.id}); }};

inline constexpr adjoint_rule custom = unknown;

}  // namespace shardwise::adjoints
