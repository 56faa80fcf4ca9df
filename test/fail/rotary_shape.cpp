// SPDX-License-Identifier: Apache-2.0
// Heads of an odd size.
// expect: rotary_embedding: the operand must be

#include <shardwise/graph/functions/rotary.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<2, 4, 8, 15>, mesh>;
#else
using x = typed<float, sw::shape<2, 4, 8, 16>, mesh>;
#endif
using y = decltype(sw::rotary_embedding(x{}));
