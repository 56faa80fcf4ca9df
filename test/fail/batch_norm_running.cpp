// SPDX-License-Identifier: Apache-2.0
// Running statistics of other channels.
// expect: batch_norm, group_norm: weight, bias and running statistics are of one dim

#include <shardwise/graph/functions/channel_norms.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::batch_norm(whole<2, 6, 9, 8>{}, whole<6>{}, whole<5>{}));
#else
using y = decltype(sw::batch_norm(whole<2, 6, 9, 8>{}, whole<6>{}, whole<6>{}));
#endif
