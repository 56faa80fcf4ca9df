// SPDX-License-Identifier: Apache-2.0
// A variance over a sharded dim, where the mean would need a collective.
// expect: var, std: a reduced dim is sharded, and squares are taken around the mean of all ranks

#include "typed.hpp"

#include <shardwise/graph/functions/reduction_functions.hpp>

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::var<0>(typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>{}));
#else
using y = decltype(sw::var_over<tp, 0>(typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>{}));
#endif
