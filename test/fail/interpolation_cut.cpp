// SPDX-License-Identifier: Apache-2.0
// Three columns for two of an image whose columns are cut.
// expect: interpolate: images are cut along the batch or the channels, and, each by one axis in equal shards

#include <shardwise/graph/functions/interpolate.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class P>
using image = typed<float, sw::shape<2, 6, 9, 8>, mesh, sw::on<tp, P>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::interpolate<18, 12>(image<sw::shard<3>>{}));
#else
using y = decltype(sw::interpolate<18, 16>(image<sw::shard<3>>{}));
#endif
