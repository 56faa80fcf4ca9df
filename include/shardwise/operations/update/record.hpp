// SPDX-License-Identifier: Apache-2.0
// Records of what writes into parameters and states.
#pragma once

#include <shardwise/propagation/operation.hpp>

namespace shardwise::operations {

// The parameter; with momentum its buffer, too.
inline constexpr operation sgd =
    without_rule(operation_kind::update, [](const op_attr& a) { return attributes_of<sgd_attributes>(a).momentum != 0 ? 0b101U : 0b1U; });
// The parameter and both moments.
inline constexpr operation adam = without_rule(operation_kind::update, [](const op_attr&) { return 0b1101U; });
inline constexpr operation assign = without_rule(operation_kind::update, &writes_first, element_rule::any);
inline constexpr operation in_place = without_rule(operation_kind::update, &writes_first);
inline constexpr operation advance = without_rule(operation_kind::update, &writes_first);
inline constexpr operation adam_term = without_rule(operation_kind::computed);

}  // namespace shardwise::operations
