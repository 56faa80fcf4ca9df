// SPDX-License-Identifier: Apache-2.0
// What nothing looks into has the adjoint that its user gives; a custom operation has its own (rule_of in autodiff/adjoints.hpp).
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

// An opaque call for each operand. Law: as opaque_cotangent_place says, a rank computes a shard, a summand or all of the operand's
// cotangent; all of it becomes a summand without communication, and a summand where all is required is refused.
constexpr void pull_opaque(pullback& p) {
  const auto called = attributes_of<opaque_attributes>(p.n.a);
  if (called.cotangent != 0) return refuse_gradient(p);
  const std::uint32_t given = p.t.b.functions[called.function]->adjoint;
  int dy = -1;
  for (int k = 0; k < p.n.inputs; ++k) {
    if (!p.wants(k) || !is_floating(p.operand(k).type)) continue;
    if ((given >> k & 1U) == 0) return p.refuse({problem::opaque_gradient, p.id});
    if (dy < 0) {
      const dtype type = p.result().type;
      dy = contiguous_node(p.t, p.t.spec_at(p.dy).type == type ? p.dy : p.t.converted(p.dy, type, p.n.scope), p.n.scope);
    }
    spec s = contiguous(dual(p.operand(k)));
    for (int a = 0; a < s.axes; ++a) {
      const placement wanted = s.place[a];
      s.place[a] = opaque_cotangent_place(p.t.spec_at(dy).place[a], p.operand(k).place[a]);
      if (s.place[a] != wanted && !s.place[a].is_replicate())
        return p.refuse({problem::opaque_adjoint_placements, p.id, -1, -1, a});
    }
    node n = empty_node;
    n.op = op_code::opaque;
    n.a = attributes<opaque_attributes>(called.function, k + 1);
    n.inputs = p.n.inputs + 1;
    for (int j = 0; j < p.n.inputs; ++j) n.in[j] = p.n.in[j];
    n.in[p.n.inputs] = dy;
    n.spec = p.t.b.intern(s);
    n.scope = p.n.scope;
    int id = p.t.b.append(n);
    for (int a = 0; a < s.axes; ++a) {
      const placement wanted = p.t.b.specs[p.cospec(k)].place[a];
      if (s.place[a] == wanted) continue;
      s.place[a] = wanted;
      id = p.t.b.emit(op_code::redistribute, attributes<redistribute_attributes>(a, pack(wanted)), 0, p.t.b.intern(s),
                      p.n.scope, id);
    }
    p.give(k, id);
  }
}
// For one operand: two of the result's cotangent, the call, and a redistribution an axis.
inline constexpr adjoint_rule opaque = pulled<3 + max_axes>(&pull_opaque);

inline constexpr adjoint_rule custom = unknown;

// The node with the results is pulled once, when all of them have been seen: it finds their cotangents there. Until then what it
// has is a mark that one of them has one.
inline constexpr adjoint_rule getitem = pulled<0>([](pullback& p) { p.t.cotangent[p.n.in[0]] = p.dy; });

}  // namespace shardwise::inline v0_1::adjoints
