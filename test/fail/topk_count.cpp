// SPDX-License-Identifier: Apache-2.0
// More largest elements than there are.
// expect: topk: more elements are asked for than the dim has, or none

#include "typed.hpp"

#include <shardwise/graph/ranking_functions.hpp>

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::topk<9>(typed<float, sw::shape<4, 8>, mesh>{}));
#else
using y = decltype(sw::topk<8>(typed<float, sw::shape<4, 8>, mesh>{}));
#endif
