// SPDX-License-Identifier: Apache-2.0
// A tensor of nine dims.
// expect: tensor: the rank exceeds 8

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<2, 2, 2, 2, 2, 2, 2, 1, 2>, mesh>;
#else
using x = typed<float, sw::shape<2, 2, 2, 2, 2, 2, 1, 2>, mesh>;
#endif
constexpr int rank = x::sp.rank;
