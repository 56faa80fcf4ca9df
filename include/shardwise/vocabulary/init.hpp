// SPDX-License-Identifier: Apache-2.0
// How a parameter's initial values are drawn: from (seed, parameter path, global element index) alone.
#pragma once

#include <cstdint>

namespace shardwise::inline v0_1 {

enum class init_kind : std::uint8_t { zeros, ones, normal, uniform };

}  // namespace shardwise::inline v0_1
