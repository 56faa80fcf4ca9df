// SPDX-License-Identifier: Apache-2.0
// Adjoints of redistributions, waits and claims about blocks.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

// What the derivative of a redistribution on `axis` multiplies a cotangent by. A mean's is its block's own: one part in
// `ranks` of the whole's, though placed as a sum's; and the whole that every rank's block of a mean was made of has all
// their derivatives together.
constexpr double redistribution_factor(const spec& x, const spec& out, int axis) {
  const placement mean = partial_value(reduction::avg);
  const bool from = x.place[axis] == mean, to = out.place[axis] == mean;
  const double ranks = x.axis_size[axis];
  return from == to ? 1 : from ? 1 / ranks : ranks;
}
constexpr bool rescales(const spec& x, const spec& out) {
  bool any = false;
  for (int a = 0; a < x.axes; ++a) any = any || redistribution_factor(x, out, a) != 1;
  return any;
}

// The gradients of a group's parameters are scattered side by side: what some need before, dense storage, is done for all of them
// when the sweep meets the first. All readers of the group's parameters come after its gathers, so their cotangents are complete.
constexpr void make_group_dense(pullback& p) {
  tape& t = p.t;
  const auto beside = [&](int i) { return gathers_beside(t.b.nodes[i], p.n); };
  for (int i = p.id + 1; i < t.forward && beside(i); ++i)
    if (t.cotangent[i] >= 0) return;  // done before
  for (int i = p.id; i >= 0 && beside(i); --i)
    if (t.cotangent[i] >= 0) t.cotangent[i] = contiguous_node(t, t.cotangent[i], p.n.scope);
  p.dy = t.cotangent[p.id];
}

// Back to the dual of where the operand was.
inline constexpr adjoint_rule redistribute =
    pulled([](int, const spec& x, const spec& out) { return 2 + (rescales(x, out) ? 1 : 0); },
           [](pullback& p) {
             tape& t = p.t;
             const int axis = static_cast<int>(attributes_of<redistribute_attributes>(p.n.a).axis);
             const placement given = p.operand(0).place[axis], made = p.result().place[axis], to = dual(given);
             for (const placement& q : {given, made})
               if (q.is_partial() && q == dual(q)) p.refuse({problem::redistribute_partial_op, p.id, -1, axis});
             const op_attr a = attributes<redistribute_attributes>(axis, pack(to));
             const placement from = t.spec_at(p.dy).place[axis];
             const bool moves = transition_of(from, to, p.operand(0).axis_size[axis]) != transition::none;
             if (moves && gathers_parameter(p.n)) make_group_dense(p);
             int source = moves ? contiguous_node(t, p.dy, p.n.scope) : p.dy;
             spec out = t.spec_at(source);
             out.place[axis] = to;
             const double factor = redistribution_factor(p.operand(0), p.result(), axis);
             if (t.spec_at(source).place[axis] != to)
               source = t.b.emit(op_code::redistribute, a, 0, t.b.intern(out), p.n.scope, source);
             if (factor != 1)
               source = t.b.emit(op_code::scale, {}, factor, t.b.intern(contiguous(t.spec_at(source))), p.n.scope, source);
             p.give(0, source);
           });

inline constexpr adjoint_rule wait = pulled<0>([](pullback& p) { p.give(0, p.dy); });

// The cotangent's blocks, under the operand's extents and the placements that the relabelling asks for.
inline constexpr adjoint_rule relabel = pulled<2 + 2 * max_axes>([](pullback& p) {
  tape& t = p.t;
  const node& n = p.n;
  const spec own = p.operand(0);
  const auto labels = attributes_of<relabel_attributes>(n.a);
  for (int a = 0; a < own.axes; ++a)
    if ((labels.unlabelled >> a) & 1) p.refuse({problem::to_local_gradient_missing, p.id, -1, a});
  spec claim = contiguous(own);
  double copies = 1;  // equal summands need no sum
  bool equal[max_axes]{};
  for (int a = 0; a < own.axes; ++a) {
    const placement g = unpack_placement(labels.cotangent[a]);
    equal[a] = own.place[a].is_replicate() && g == partial_value() && t.spec_at(p.dy).place[a].is_whole();
    if (equal[a]) {
      copies *= own.axis_size[a];
      continue;
    }
    claim.place[a] = own.place[a].is_shard() ? own.place[a] : g.is_shard() ? reduced_value() : g;
  }
  relabel_attributes back{};
  for (int a = 0; a < own.axes; ++a) back.cotangent[a] = pack(dual(claim.place[a]));
  const int source = contiguous_node(t, p.dy, n.scope);
  int c = t.b.emit(op_code::relabel, pack_attributes(back), 0, t.b.intern(claim), n.scope, source);
  auto move = [&](int axis, placement to) {
    if (claim.place[axis] == to) return;
    claim.place[axis] = to;
    p.refuse(check_placements(claim));
    c = t.b.emit(op_code::redistribute, attributes<redistribute_attributes>(axis, pack(to)), 0, t.b.intern(claim), n.scope,
                 c);
  };
  for (int a = 0; a < own.axes; ++a)
    if (!own.place[a].is_shard() && !equal[a]) {
      move(a, unpack_placement(labels.cotangent[a]));
      move(a, dual(own.place[a]));
    }
  if (copies != 1) c = t.b.emit(op_code::scale, {}, copies, t.b.intern(claim), n.scope, c);
  p.give(0, c);
});

}  // namespace shardwise::inline v0_1::adjoints
