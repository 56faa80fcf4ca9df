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

// Gives the operands of node `id` their cotangents.
constexpr void pull(tape& t, int id) {
  const adjoint_rule& rule = rule_of(t.b, t.b.nodes[id]);
  pullback p(t, id, rule.into);
  rule.pull.value(p);
}

}  // namespace autodiff

}  // namespace shardwise::inline v0_1
