// SPDX-License-Identifier: Apache-2.0
// Adjoints of views, slices and paddings.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule permute = pulled([](pullback& p) {
  const std::int64_t from = attributes_of<permute_attributes>(p.n.a).from;
  std::int64_t to = 0;
  for (int d = 0; d < p.result().rank; ++d) to |= std::int64_t{d} << (4 * rules::packed_dim(from, d));
  const op_attr inverse = attributes<permute_attributes>(to);
  const int s = p.t.b.intern(rules::permute_spec(inverse, p.t.spec_at(p.dy)).out);
  p.give(0, p.t.b.emit(op_code::permute, inverse, 0, s, p.n.scope, p.dy));
});
inline constexpr adjoint_rule reshape = pulled<2>([](pullback& p) {
  const op_attr a = pack_extents(p.operand(0));
  const int source = contiguous_node(p.t, p.dy, p.n.scope);
  p.give(0, p.emit(op_code::reshape, a, 0, 0, source));
});
inline constexpr adjoint_rule slice = pulled([](pullback& p) {
  const auto of = attributes_of<slice_attributes>(p.n.a);
  if (int& so_far = p.t.cotangent[p.n.in[0]]; of.apart != 0 && so_far >= 0) {
    so_far = p.emit(op_code::slice_scatter, attributes<slice_attributes>(of.dim, of.start, of.length), 0, 0, so_far, p.dy);
    return;
  }
  p.give(0, p.emit(op_code::pad, attributes<slice_attributes>(of.dim, of.start, p.operand(0).extent[of.dim]), 0, 0, p.dy));
});
inline constexpr adjoint_rule pad = pulled([](pullback& p) {
  const auto of = attributes_of<slice_attributes>(p.n.a);
  p.give(0, sliced(p.t, p.dy, static_cast<int>(of.dim), of.start, p.operand(0).extent[of.dim], p.n.scope));
});
// Zeros where the slice was written over; to what was written, the slice.
inline constexpr adjoint_rule slice_scatter =
    pulled([](int k, const spec&, const spec&) { return k == 0 ? 2 : 1; },
           [](pullback& p) {
             if (p.wants(0)) {
               const int zeros = p.t.b.emit(op_code::fill, {}, 0, p.cospec(1), p.n.scope, -1);
               p.give(0, p.emit(op_code::slice_scatter, p.n.a, 0, 0, p.dy, zeros));
             }
             const auto of = attributes_of<slice_attributes>(p.n.a);
             if (p.wants(1)) p.give(1, sliced(p.t, p.dy, static_cast<int>(of.dim), of.start, of.length, p.n.scope));
           });
inline constexpr adjoint_rule broadcast = pulled([](pullback& p) { p.give_summed(0, p.dy); });
inline constexpr adjoint_rule copy_ = unknown;
inline constexpr adjoint_rule detach = no_derivative;

}  // namespace shardwise::inline v0_1::adjoints
