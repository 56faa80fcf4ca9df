// SPDX-License-Identifier: Apache-2.0
// Another tensor over one that is placed otherwise: what is written stays where it is.
// expect: redistribute the other operand to the tensor's placements first
// expect: where<shardwise::op::copy_,

#include <shardwise/graph/mutating_functions.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Placement>
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, Placement>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::copy_(x<sw::shard<0>>{}, x<sw::replicate>{}));
#else
using y = decltype(sw::copy_(x<sw::shard<0>>{}, x<sw::shard<0>>{}));
#endif
