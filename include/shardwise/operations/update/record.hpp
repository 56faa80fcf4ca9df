// SPDX-License-Identifier: Apache-2.0
// Records of what writes into parameters and states.
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::inline v0_1::operations {

// Most parameters are small, and a launch each would be most of a small model's step.
constexpr operation update_together(operation::write_rule writes) {
  operation o = without_rule(operation_kind::update, writes);
  o.launch = launching::together;
  return o;
}
// The parameter; with momentum its buffer, too.
inline constexpr operation sgd =
    update_together([](const op_attr& a) { return attributes_of<sgd_attributes>(a).momentum != 0 ? 0b101U : 0b1U; });
// The parameter and both moments.
inline constexpr operation adam = update_together([](const op_attr&) { return 0b1101U; });
inline constexpr operation sgd_with = sgd;
// The parameter and two moments, with amsgrad three.
inline constexpr operation adam_with =
    update_together([](const op_attr& a) { return (update_options_of(a) & keeps_largest) != 0 ? 0b11101U : 0b1101U; });
// The parameter and the momentum.
inline constexpr operation lion = update_together([](const op_attr&) { return 0b101U; });
// The parameter and, behind gradient and direction, the momentum.
inline constexpr operation muon = update_together([](const op_attr&) { return 0b1001U; });
inline constexpr operation assign = without_rule(operation_kind::update, &writes_first, element_rule::any);
inline constexpr operation in_place = without_rule(operation_kind::update, &writes_first);
inline constexpr operation advance = without_rule(operation_kind::update, &writes_first);
// The step's factor, the scale and its counts.
inline constexpr operation adjust_scale = without_rule(operation_kind::update, [](const op_attr&) { return 0b111U; });
inline constexpr operation adam_term = without_rule(operation_kind::computed);
inline constexpr operation adam_term_with = adam_term;
inline constexpr operation muon_direction = adam_term;

}  // namespace shardwise::inline v0_1::operations
