// SPDX-License-Identifier: Apache-2.0
// More largest elements than there are.
// expect: topk, sort: more elements are asked for than the dim has, or none
// expect(text): operation: topk; operand: float[4, 8] (tp: replicate); mesh: "tp" of 2; dim: 1; elements asked for: 9; extent: 8

#include "typed.hpp"

#include <shardwise/graph/functions/ranking_functions.hpp>

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::topk<9>(typed<float, sw::shape<4, 8>, mesh>{}));
#else
using y = decltype(sw::topk<8>(typed<float, sw::shape<4, 8>, mesh>{}));
#endif
