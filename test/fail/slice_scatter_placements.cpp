// SPDX-License-Identifier: Apache-2.0
// A replicated part of a sharded tensor.
// expect: slice_scatter: the part is placed otherwise than the tensor that it is written into
// expect: where<shardwise::op::slice_scatter,

#include <shardwise/graph/functions/joins.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Shape, class Placement>
using real = typed<float, Shape, mesh, sw::on<tp, Placement>>;
using x = real<sw::shape<4, 8>, sw::shard<1>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::slice_scatter<0, 1>(x{}, real<sw::shape<2, 8>, sw::replicate>{}));
#else
using y = decltype(sw::slice_scatter<0, 1>(x{}, real<sw::shape<2, 8>, sw::shard<1>>{}));
#endif
