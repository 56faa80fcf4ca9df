// SPDX-License-Identifier: Apache-2.0
// A write in place whose result is larger than the tensor that it is written to.
// expect: in place: the result has other extents, placements or elements than the tensor that it is written to
// expect: where<shardwise::op::copy_,

#include <shardwise/graph/functions/mutating_functions.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Placement>
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, Placement>>;
using row = typed<float, sw::shape<4, 1>, mesh, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::mul_(row{}, x<sw::shard<0>>{}));
#else
using y = decltype(sw::mul_(x<sw::shard<0>>{}, row{}));
#endif
