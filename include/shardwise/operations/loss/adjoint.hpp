// SPDX-License-Identifier: Apache-2.0
// Adjoints of cross entropy.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule lse = pulled<8>([](pullback& p) {  // dy softmax: rows' numbers get a last dim of extent 1
  spec lines = p.operand(0);
  set_extent(lines, lines.rank - 1, 1);
  const op_attr rows = pack_extents(lines);
  const int norm = derive(p.t, op_code::reshape, rows, 0, p.n.scope, p.id);
  const dtype type = p.operand(0).type, wide = wide_of(type);
  const auto as = [&](dtype t, int node_id) {
    return derive(p.t, op_code::cast, attributes<cast_attributes>(static_cast<std::int64_t>(t)), 0, p.n.scope, node_id);
  };
  const int x = type == wide ? p.n.in[0] : as(wide, p.n.in[0]);
  const int softmax = p.make(op_code::exp, p.make(op_code::sub, x, norm));
  const int g = derive(p.t, op_code::reshape, rows, 0, p.n.scope, contiguous_node(p.t, p.dy, p.n.scope));
  const int dx = p.make(op_code::mul, softmax, g);
  p.give(0, type == wide ? dx : as(type, dx));
});
inline constexpr adjoint_rule nll =
    pulled([](pullback& p) { p.give(0, p.emit(op_code::nll_dx, p.n.a, 0, 0, p.dy, p.n.in[0], p.n.in[1], p.n.in[2])); }, 1U);
inline constexpr adjoint_rule exp_sum = no_derivative;
inline constexpr adjoint_rule nll_dx = unknown;
inline constexpr adjoint_rule nll_dx_loss = unknown;

}  // namespace shardwise::inline v0_1::adjoints
