// SPDX-License-Identifier: Apache-2.0
// Updates are not differentiated.
#pragma once

#include <shardwise/graph/tape.hpp>

namespace shardwise::inline v0_1::adjoints {

using namespace autodiff;

inline constexpr adjoint_rule sgd = unknown;
inline constexpr adjoint_rule adam = unknown;
inline constexpr adjoint_rule sgd_with = unknown;
inline constexpr adjoint_rule adam_with = unknown;
inline constexpr adjoint_rule lion = unknown;
inline constexpr adjoint_rule muon = unknown;
inline constexpr adjoint_rule assign = unknown;
inline constexpr adjoint_rule in_place = unknown;
inline constexpr adjoint_rule advance = unknown;
inline constexpr adjoint_rule adam_term = unknown;
inline constexpr adjoint_rule adam_term_with = unknown;
inline constexpr adjoint_rule muon_direction = unknown;
inline constexpr adjoint_rule adjust_scale = unknown;

}  // namespace shardwise::inline v0_1::adjoints
