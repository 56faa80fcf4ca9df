// SPDX-License-Identifier: Apache-2.0
// The adjoint of rows read from a table: cotangents added up where they were read.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule embedding = pulled(
    [](pullback& p) {
      if (p.wants(0))
        p.give(0, p.emit(op_code::embedding_dw, rules::embedding_dw_attr(p.operand(0)), 0, 0, p.dy, p.n.in[1]));
    },
    1U);
inline constexpr adjoint_rule embedding_dw = unknown;

}  // namespace shardwise::inline v0_1::adjoints
