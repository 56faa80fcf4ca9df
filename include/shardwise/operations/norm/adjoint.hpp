// SPDX-License-Identifier: Apache-2.0
// Adjoints of norms; what goes to the statistics goes to the operand through norm_dx.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule norm_apply = pulled(
    [](pullback& p) {
      const node& n = p.n;
      if (p.wants(0)) p.give(0, p.emit(op_code::norm_dx, n.a, n.f, 0, p.dy, n.in[0], n.in[1], n.in[2]));
      if (p.wants(2)) p.give(2, p.emit(op_code::norm_dw, n.a, n.f, 2, p.dy, n.in[0], n.in[1]));
      if (n.inputs > 3 && p.wants(3)) p.give(3, p.emit(op_code::sum, unbroadcast(p.operand(3), p.result()), 0, 3, p.dy));
    },
    every_operand & ~2U);
inline constexpr adjoint_rule norm_stats = no_derivative;

inline constexpr adjoint_rule norm_dx = unknown;
inline constexpr adjoint_rule norm_dw = unknown;

// What passes write stands behind differentiation.
inline constexpr adjoint_rule norm = unknown;
inline constexpr adjoint_rule norm_dw_db = unknown;
inline constexpr adjoint_rule norm_dx_dw = unknown;

}  // namespace shardwise::inline v0_1::adjoints
