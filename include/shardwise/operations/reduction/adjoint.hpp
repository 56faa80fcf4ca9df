// SPDX-License-Identifier: Apache-2.0
// Adjoints of sums, norms, extremes and products over dims.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule sum = pulled([](pullback& p) { p.give(0, p.emit(op_code::expand, p.n.a, 0, 0, p.dy)); });
inline constexpr adjoint_rule sumsq = pulled<3>([](pullback& p) {
  const int spread = p.emit(op_code::expand, p.n.a, 0, 0, p.make(op_code::scale, p.dy, -1, 2));
  p.give(0, p.make(op_code::mul, spread, p.n.in[0]));
});
inline constexpr adjoint_rule vector_norm =
    pulled([](pullback& p) { p.give(0, p.emit(op_code::vector_norm_dx, p.n.a, 0, 0, p.dy, p.n.in[0], p.id)); });

// All elements that are the largest share evenly; each of them ties: 1/2, of half their number.
template <bool Largest>
constexpr void pull_extreme(pullback& p) {
  const int tie = Largest ? p.make(op_code::wins, p.n.in[0], p.id) : p.make(op_code::wins, p.id, p.n.in[0]);
  const int count = p.make(op_code::sum, tie, -1, 0, attributes_of<extent_one_attributes>(p.n.a).dims);
  p.give(0, p.make(op_code::mul, p.make(op_code::div, p.dy, count), tie));
}
inline constexpr adjoint_rule amax = pulled<4>(&pull_extreme<true>);
inline constexpr adjoint_rule amin = pulled<4>(&pull_extreme<false>);
inline constexpr adjoint_rule prod = pulled([](pullback& p) {
  p.give(0, p.make(op_code::prod_dx, p.dy, p.n.in[0], 0, attributes_of<extent_one_attributes>(p.n.a).dims));
});

inline constexpr adjoint_rule expand = unknown;
inline constexpr adjoint_rule vector_norm_dx = unknown;
inline constexpr adjoint_rule prod_dx = unknown;

}  // namespace shardwise::inline v0_1::adjoints
