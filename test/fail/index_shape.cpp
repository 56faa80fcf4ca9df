// SPDX-License-Identifier: Apache-2.0
// An index of another rank.
// expect: indexing: the operands' extents do not fit
// expect: where<shardwise::op::gather,

#include <shardwise/graph/indexing.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Shape, class Placement = sw::replicate>
using real = typed<float, Shape, mesh, sw::on<tp, Placement>>;
template <class Shape, class Placement = sw::replicate>
using ids = typed<std::int32_t, Shape, mesh, sw::on<tp, Placement>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::gather<1>(real<sw::shape<4, 8>>{}, ids<sw::shape<3>>{}));
#else
using y = decltype(sw::gather<1>(real<sw::shape<4, 8>>{}, ids<sw::shape<4, 3>>{}));
#endif
