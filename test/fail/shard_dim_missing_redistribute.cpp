// SPDX-License-Identifier: Apache-2.0
// redistribute to shard, the template, without a dim.
// expect: placement: shard is given without the dim that it splits
// expect: as in shard<0>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4>, sw::mesh<tp>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<tp, sw::shard>(x{}));
#else
using y = decltype(sw::redistribute<tp, sw::shard<0>>(x{}));
#endif
