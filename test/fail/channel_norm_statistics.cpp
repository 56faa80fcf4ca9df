// SPDX-License-Identifier: Apache-2.0
// The operation itself with statistics of other images.
// expect: batch_norm, group_norm: the statistics, or a gradient, are not those of the tensor's extents

#include <shardwise/graph/functions/channel_norms.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
inline constexpr sw::op_attr groups = sw::pack_attributes(sw::channel_norm_attributes{3, 0});
template <class X, class S>
using normed = decltype(sw::call<sw::custom::channel_norm, groups>(X{}, S{}, S{}, whole<6>{}, whole<6>{}));
#ifdef SHARDWISE_FAIL
using y = normed<whole<2, 6, 9, 8>, whole<3, 3>>;
#else
using y = normed<whole<2, 6, 9, 8>, whole<2, 3>>;
#endif
