// SPDX-License-Identifier: Apache-2.0
// Records of further elementwise functions and of their adjoints, made as a user's own are.
#pragma once

#include <shardwise/operations/pointwise/record.hpp>

namespace shardwise::inline v0_1 {

struct softplus_attributes {
  real beta, threshold;
};

namespace operations {

inline constexpr operation activation = pointwise(linearity::none);
inline constexpr operation activation_dx =
    pointwise(linearity::first);  // of a cotangent, and what its factor is computed from

}  // namespace operations

}  // namespace shardwise::inline v0_1
