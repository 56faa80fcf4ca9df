// SPDX-License-Identifier: Apache-2.0
// Records of values that have no operands.
#pragma once

#include <shardwise/propagation/operation.hpp>
#include <shardwise/propagation/fill.hpp>

namespace shardwise::inline v0_1::operations {

inline constexpr operation input = without_rule(operation_kind::leaf);
inline constexpr operation param = without_rule(operation_kind::leaf);
inline constexpr operation state = without_rule(operation_kind::leaf);
inline constexpr operation module_buffer = without_rule(operation_kind::leaf);

inline constexpr operation fill =
    without_rule(operation_kind::source, &writes_nothing, element_rule::any, recomputing::cheap);
inline constexpr operation arange = without_rule(operation_kind::source, &writes_nothing, element_rule::any);

inline constexpr operation rand = [] {
  operation o = without_rule(operation_kind::source);
  o.random = true;
  return o;
}();
inline constexpr operation randn = rand;

// Draws with the probabilities that its operand holds, element by element.
inline constexpr operation bernoulli = [] {
  operation o = by_rows(
      &like_first,
      [](const operation&, const op_attr&, const spec* in, int, const spec&) {
        return rules::elementwise_rows(in[0], false);
      },
      &refuse_with<problem::random_partial>, -1, element_rule::real, operand_choice::kept);
  o.random = true;
  return o;
}();

}  // namespace shardwise::inline v0_1::operations
