// SPDX-License-Identifier: Apache-2.0
// What differentiation makes of every operation, by number.
#pragma once

#include <shardwise/operations/contraction/adjoint.hpp>
#include <shardwise/operations/embedding/adjoint.hpp>
#include <shardwise/operations/fill/adjoint.hpp>
#include <shardwise/operations/indexing/adjoint.hpp>
#include <shardwise/operations/join/adjoint.hpp>
#include <shardwise/operations/leaf/adjoint.hpp>
#include <shardwise/operations/loss/adjoint.hpp>
#include <shardwise/operations/movement/adjoint.hpp>
#include <shardwise/operations/norm/adjoint.hpp>
#include <shardwise/operations/opaque/adjoint.hpp>
#include <shardwise/operations/pointwise/adjoint.hpp>
#include <shardwise/operations/reduction/adjoint.hpp>
#include <shardwise/operations/row/adjoint.hpp>
#include <shardwise/operations/update/adjoint.hpp>
#include <shardwise/operations/view/adjoint.hpp>
#include <shardwise/operations/written/adjoint.hpp>

namespace shardwise::inline v0_1 {

namespace adjoints {

// An operation that is listed and of which differentiation has no rule does not compile.
inline constexpr const autodiff::adjoint_rule* all[] = {
#define SHARDWISE_X(name, kernel) &name,
    SHARDWISE_OPS(SHARDWISE_X)
#undef SHARDWISE_X
};

}  // namespace adjoints

namespace autodiff {

constexpr const adjoint_rule& rule_of(op_code op) {
  return op < op_code::count ? *adjoints::all[static_cast<int>(op)] : unknown;
}

// That of a node's operation; `g` is its graph, or a builder of it.
template <class Graph>
constexpr const adjoint_rule& rule_of(const Graph& g, const node& n) {
  return is_custom(g, n) ? *g.customs[n.a.v[custom_word]]->adjoint.value : rule_of(n.op);
}

constexpr adjoint adjoint_of(op_code op) { return rule_of(op).kind; }
// Operands that gradients flow into, by position; indices, statistics and nll's log-normaliser take none.
constexpr bool differentiable(const adjoint_rule& rule, int operand) { return (rule.into >> operand & 1U) != 0; }
constexpr bool differentiable(op_code op, int operand) { return differentiable(rule_of(op), operand); }

// What a rule may append for a node, with a sum and a conversion for each contribution, and two nodes for each of several results.
constexpr int most_nodes(const tape& t, const adjoint_rule& rule, const node& n) {
  const int results = result_count(t.b, n);
  int most = results > 1 ? 2 * results : 0;
  for (int k = 0; k < n.inputs; ++k)
    if (differentiable(rule, k)) most += rule.most.value(k, t.spec_at(n.in[k]), t.b.specs[n.spec]) + 2;
  return most;
}
// Gives the operands of node `id` their cotangents. A user's rule appends no more than it states, so that one that states too little is
// found where it stands, whether others have left room or not.
constexpr void pull(tape& t, int id) {
  const node n = t.b.nodes[id];
  const adjoint_rule& rule = rule_of(t.b, n);
  const int before = t.b.node_count;
  pullback p(t, id, rule.into);
  rule.pull.value(p);
  if (!is_custom(t.b, n) || t.b.node_count - before <= most_nodes(t, rule, n)) return;
  t.refuse({problem::adjoint_nodes});
}

}  // namespace autodiff

}  // namespace shardwise::inline v0_1
