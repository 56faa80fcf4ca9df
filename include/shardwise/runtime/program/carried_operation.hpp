// SPDX-License-Identifier: Apache-2.0
// carried_operation: what a program's image holds in place of a user's own operation.
#pragma once

#include <shardwise/graph/node.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::runtime {

// A user's own operation as a run knows it: its name, its results and what it writes. Rules and adjoint are left out.
// It is another object than the operation: what looks an operation up by its address must know both addresses.
template <const custom_operation* Op>
inline constexpr custom_operation carried_operation = [] {
  operation o = operations::without_rule(Op->record.kind, Op->record.writes);
  o.results = Op->record.results;
  o.random = Op->record.random;
  o.launch = Op->record.launch;
  return custom_operation{.name = Op->name, .operands = Op->operands, .record = o, .adjoint = nullptr};
}();

}  // namespace shardwise::inline v0_1::runtime
