// SPDX-License-Identifier: Apache-2.0
// What nothing looks into has no adjoint; a custom operation has its own (rule_of in autodiff/adjoints.hpp).
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule opaque{
    .kind = adjoint::refused, .into = every_operand, .most = &at_most<1>, .pull = [](pullback& p) {
      p.refuse({problem::opaque_gradient, p.id});
    }};

inline constexpr adjoint_rule custom = unknown;

// The node with the results is pulled once, when all of them have been seen: it finds their cotangents there. Until then what it
// has is a mark that one of them has one.
inline constexpr adjoint_rule getitem = pulled<0>([](pullback& p) { p.t.cotangent[p.n.in[0]] = p.dy; });

}  // namespace shardwise::inline v0_1::adjoints
