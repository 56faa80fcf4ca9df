// SPDX-License-Identifier: Apache-2.0
// Records of what moves blocks between ranks, waits for it, or says that blocks are placed otherwise.
#pragma once

#include <shardwise/propagation/operation.hpp>
#include <shardwise/propagation/transition.hpp>

namespace shardwise::inline v0_1::operations {

inline constexpr operation redistribute = [] {
  operation o =
      without_rule(operation_kind::moving, &writes_nothing, element_rule::real, recomputing::cheap_unless_it_communicates);
  o.choice = operand_choice::none;
  o.linear = linearity::first;
  o.tabled = false;
  o.shape = [](const op_attr& a, const spec* in, int) { return rules::redistribute_spec(a, in[0]); };
  return o;
}();

inline constexpr operation wait = [] {
  operation o = without_rule(operation_kind::view);
  o.linear = linearity::first;
  o.tabled = false;
  o.shape = [](const op_attr&, const spec* in, int) { return outcome{{}, in[0]}; };
  return o;
}();

// The user's claim about blocks; verify checks their extents alone.
inline constexpr operation relabel =
    without_rule(operation_kind::view, &writes_nothing, element_rule::real, recomputing::cheap);

}  // namespace shardwise::inline v0_1::operations
