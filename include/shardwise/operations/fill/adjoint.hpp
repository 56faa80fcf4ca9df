// SPDX-License-Identifier: Apache-2.0
// Adjoints of paddings and masks by position.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule constant_pad =
    pulled([](int, const spec& x, const spec&) { return static_cast<int>(x.rank); },
           [](pullback& p) {
             int g = p.dy;
             const spec& x = p.operand(0);
             std::int64_t length[max_rank]{};
             for (int d = 0; d < x.rank; ++d) length[d] = x.extent[d];
             for (int d = 0; d < p.result().rank; ++d)
               if (rules::pads_of(p.n.a, d) != 0) g = sliced(p.t, g, d, rules::pad_before(p.n.a, d), length[d], p.n.scope);
             p.give(0, g);
           });
inline constexpr adjoint_rule triangle = pulled([](pullback& p) { p.give(0, p.emit(p.n.op, p.n.a, 0, 0, p.dy)); });

}  // namespace shardwise::inline v0_1::adjoints
