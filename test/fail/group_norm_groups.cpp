// SPDX-License-Identifier: Apache-2.0
// Four groups of six channels.
// expect: group_norm: the groups do not divide the channels

#include <shardwise/graph/functions/channel_norms.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::group_norm<4>(whole<2, 6, 9, 8>{}, whole<6>{}, whole<6>{}));
#else
using y = decltype(sw::group_norm<3>(whole<2, 6, 9, 8>{}, whole<6>{}, whole<6>{}));
#endif
