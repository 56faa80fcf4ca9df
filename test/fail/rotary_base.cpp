// SPDX-License-Identifier: Apache-2.0
// A base of 0.
// expect: rotary_embedding: the base is finite and above 0

#include <shardwise/graph/functions/rotary.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
inline constexpr sw::rotary_options options{.base = 0};
#else
inline constexpr sw::rotary_options options{.base = 500000};
#endif
using y = decltype(sw::rotary_embedding<options>(typed<float, sw::shape<2, 4, 8, 16>, mesh>{}));
