// SPDX-License-Identifier: Apache-2.0
// Adjoints of functions along the last dim.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule softmax =
    pulled([](pullback& p) { p.give(0, p.emit(op_code::softmax_dx, p.n.a, 0, 0, p.dy, p.id)); });
inline constexpr adjoint_rule log_softmax = pulled<4>([](pullback& p) {  // dy - softmax sum(dy)
  const int total = p.make(op_code::sum, p.dy, -1, 0, std::int64_t{1} << (p.result().rank - 1));
  p.give(0, p.make(op_code::sub, p.dy, p.make(op_code::mul, p.make(op_code::exp, p.id), total)));
});
inline constexpr adjoint_rule take = pulled(
    [](pullback& p) {
      const spec& whole = p.operand(0);
      const int last = whole.rank - 1;
      take_dx_attributes of{spelled(whole, last)};
      for (int i = 0; i < max_dyn_sizes; ++i)
        if ((dyn_sizes(whole, last) >> i) & 1U) of.bound[i] = whole.dyn_bound[i];
      const op_attr a = pack_attributes(of);
      p.give(0, p.emit(op_code::take_dx, a, 0, 0, p.dy, p.n.in[1]));
    },
    1U);
inline constexpr adjoint_rule topk = no_derivative;

inline constexpr adjoint_rule softmax_dx = unknown;
inline constexpr adjoint_rule take_dx = unknown;

}  // namespace shardwise::inline v0_1::adjoints
