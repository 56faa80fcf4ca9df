// SPDX-License-Identifier: Apache-2.0
// A height that is known at run time alone.
// expect: batch_norm, group_norm: a run-time extent may be the batch's alone

#include <shardwise/graph/functions/channel_norms.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::batch_norm(whole<2, 6, sw::dyn<9>, 8>{}, whole<6>{}, whole<6>{}));
#else
using y = decltype(sw::batch_norm(whole<sw::dyn<9>, 6, 9, 8>{}, whole<6>{}, whole<6>{}));
#endif
