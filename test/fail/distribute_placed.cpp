// SPDX-License-Identifier: Apache-2.0
// A tensor that has placements already is distributed with others.
// expect: distribute: the tensor given has other extents, placements, elements or another mesh
// expect: replicate
// expect(text): operand: float[4] (tp: shard<0>); mesh: "tp" of 2; operand: float[4] (tp: replicate); mesh: "tp" of 2

#include <shardwise/runtime/eager/dtensor.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using cut = sw::dtensor_of<float, sw::shape<4>, mesh, sw::shard<0>>;
using whole = sw::dtensor_of<float, sw::shape<4>, mesh, sw::replicate>;
void f(const sw::eager<sw::thread_rank<mesh>>& on, const cut& x) {
#ifdef SHARDWISE_FAIL
  whole::distribute(on, x);
#else
  cut::distribute(on, x);
#endif
}
