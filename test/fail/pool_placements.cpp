// SPDX-License-Identifier: Apache-2.0
// An image whose rows are cut in blocks of three, six and three of nine: halos are those of equal shards.
// expect: max_pool2d, avg_pool2d: images are cut along the batch, the channels, height or width

#include <shardwise/graph/functions/pooling.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class P>
using image = typed<float, sw::shape<2, 6, 9, 8>, mesh, sw::on<tp, P>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::avg_pool2d<sw::pool_options{.kernel = 2}>(image<sw::shard<2, 3>>{}));
#else
using y = decltype(sw::avg_pool2d<sw::pool_options{.kernel = 2}>(image<sw::shard<2>>{}));
#endif
