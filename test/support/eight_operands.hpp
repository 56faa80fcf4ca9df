// SPDX-License-Identifier: Apache-2.0
// An operation of as many operands as a node holds.
#pragma once

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/runtime/host/custom.hpp>

namespace own {

namespace sw = shardwise;

// x0 x1 + x2 x3 + x4 x5 + x6 x7, element by element.
inline constexpr sw::autodiff::adjoint_rule pull_pairs = sw::autodiff::pulled<8>([](sw::autodiff::pullback& p) {
  for (int k = 0; k < 8; ++k)
    if (p.wants(k)) p.give_summed(k, p.make(sw::op_code::mul, p.dy, p.n.in[k ^ 1]));
});
inline constexpr sw::custom_operation pairs{
    .name = "pairs", .operands = 8, .record = sw::operations::pointwise(sw::linearity::none), .adjoint = &pull_pairs};

}  // namespace own

template <>
struct shardwise::formula<own::pairs> {
  template <class m, class T>
  static constexpr T value(T a, T b, T c, T d, T e, T f, T g, T h) {
    return a * b + c * d + e * f + g * h;
  }
};
