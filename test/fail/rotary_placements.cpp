// SPDX-License-Identifier: Apache-2.0
// Heads cut along their size.
// expect: rotary_embedding: the size is sharded

#include <shardwise/graph/functions/rotary.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<2, 4, 8, 16>, mesh, sw::on<tp, sw::shard<3>>>;
#else
using x = typed<float, sw::shape<2, 4, 8, 16>, mesh, sw::on<tp, sw::shard<2>>>;
#endif
using y = decltype(sw::rotary_embedding(x{}));
