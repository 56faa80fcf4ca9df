// SPDX-License-Identifier: Apache-2.0
// The adjoint of tensors side by side: the parts of the cotangent.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule cat = pulled([](pullback& p) {
  const int d = rules::joined_dim(p.n.a);
  std::int64_t start = 0;
  for (int k = 0; k < p.n.inputs; ++k) {
    const std::int64_t length = p.operand(k).extent[d];
    if (p.wants(k)) p.give(k, sliced(p.t, p.dy, d, start, length, p.n.scope));
    start += length;
  }
});

}  // namespace shardwise::inline v0_1::adjoints
