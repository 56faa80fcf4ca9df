// SPDX-License-Identifier: Apache-2.0
// A dim beyond what a placement's field holds, which would come out as dim 0.
// expect: placement: shard<d> names a dim that the tensor does not have

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<65536>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
constexpr int rank = x::sp.rank;
