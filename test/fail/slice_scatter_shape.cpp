// SPDX-License-Identifier: Apache-2.0
// A part that is not as wide as what it is written into.
// expect: slice_scatter: the part has another rank or other extents than the slice that it replaces
// expect: where<shardwise::op::slice_scatter,

#include <shardwise/graph/functions/joins.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Shape>
using real = typed<float, Shape, mesh, sw::on<tp, sw::replicate>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::slice_scatter<0, 1>(real<sw::shape<4, 8>>{}, real<sw::shape<2, 7>>{}));
#else
using y = decltype(sw::slice_scatter<0, 1>(real<sw::shape<4, 8>>{}, real<sw::shape<2, 8>>{}));
#endif
