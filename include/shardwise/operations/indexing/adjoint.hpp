// SPDX-License-Identifier: Apache-2.0
// Adjoints of reading by index: adding by index; and the other way round.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

template <op_code Back>
constexpr void pull_read(pullback& p) {
  const std::int64_t dim = rules::indexed_dim(p.n.a), places = p.operand(0).extent[dim];
  if (p.wants(0)) p.give(0, p.emit(Back, attributes<index_attributes>(dim, places), 0, 0, p.dy, p.n.in[1]));
}
template <op_code Back>
constexpr void pull_added(pullback& p) {
  if (p.wants(0)) p.give(0, p.emit(Back, attributes<index_attributes>(rules::indexed_dim(p.n.a)), 0, 0, p.dy, p.n.in[1]));
}
inline constexpr adjoint_rule gather = pulled(&pull_read<op_code::scatter_add>, 1U);
inline constexpr adjoint_rule index_select = pulled(&pull_read<op_code::index_add>, 1U);
inline constexpr adjoint_rule scatter_add = pulled(&pull_added<op_code::gather>, 1U);
inline constexpr adjoint_rule index_add = pulled(&pull_added<op_code::index_select>, 1U);
inline constexpr adjoint_rule scatter = pulled(
    [](pullback& p) {
      const int dim = rules::indexed_dim(p.n.a);
      if (p.wants(0)) p.give(0, p.emit(op_code::scatter, attributes<scatter_attributes>(dim, 1), 0, 0, p.dy, p.n.in[1]));
      if (p.n.inputs > 2 && p.wants(2))
        p.give(2, p.emit(op_code::scatter_dsrc, attributes<index_attributes>(dim), 0, 2, p.dy, p.n.in[1]));
    },
    every_operand & ~2U);
inline constexpr adjoint_rule one_hot = no_derivative;
inline constexpr adjoint_rule scatter_dsrc = unknown;

}  // namespace shardwise::inline v0_1::adjoints
