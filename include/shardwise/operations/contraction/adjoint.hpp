// SPDX-License-Identifier: Apache-2.0
// Adjoints of contractions: contractions of the cotangent with the other operand.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule einsum = pulled([](pullback& p) {
  const auto labels = attributes_of<einsum_attributes>(p.n.a);
  if (p.wants(0))
    p.give(0, p.emit(op_code::einsum, attributes<einsum_attributes>(labels.out, labels.rhs, labels.lhs), p.n.f, 0, p.dy,
                     p.n.in[1]));
  if (p.wants(1))
    p.give(1, p.emit(op_code::einsum, attributes<einsum_attributes>(labels.out, labels.lhs, labels.rhs), p.n.f, 1, p.dy,
                     p.n.in[0]));
});

}  // namespace shardwise::inline v0_1::adjoints
