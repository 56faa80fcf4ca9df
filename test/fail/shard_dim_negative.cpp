// SPDX-License-Identifier: Apache-2.0
// A negative dim in the placements of a tensor: only redistribute and from_local count from the end.
// expect: placement: shard<d> names a dim that the tensor does not have

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<-1>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#endif
constexpr int rank = x::sp.rank;
