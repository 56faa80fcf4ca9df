// SPDX-License-Identifier: Apache-2.0
// Another tensor over one that is placed otherwise: what is written stays where it is.
// expect: redistribute the other operand to the tensor's placements first
// expect: where<shardwise::op::copy_,
// expect(text): operation: copy_; operands: float[4, 8] (tp: shard<0>), float[4, 8] (tp: replicate); mesh: "tp" of 2; at fault: the second operand; axis: "tp" of 2

#include <shardwise/graph/functions/mutating_functions.hpp>

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
