// SPDX-License-Identifier: Apache-2.0
// A tensor whose bytes no 64 bits count.
// expect: tensor: its elements take more bytes than 2\^60
// expect: shardwise::shape<4294967296L?, 4294967296L?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4294967296, 4294967296>, mesh>;
#else
using x = typed<float, sw::shape<4294967296, 16777216>, mesh>;
#endif
constexpr int rank = x::sp.rank;
