// SPDX-License-Identifier: Apache-2.0
// A vector of channels without a batch.
// expect: batch_norm, group_norm: tensors are of at least two dims

#include <shardwise/graph/functions/channel_norms.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::group_norm<2>(whole<6>{}, whole<6>{}, whole<6>{}));
#else
using y = decltype(sw::group_norm<2>(whole<1, 6>{}, whole<6>{}, whole<6>{}));
#endif
