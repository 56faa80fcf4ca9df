// SPDX-License-Identifier: Apache-2.0
// Positions of other windows than those that are asked for.
// expect: max_pool2d: positions are an int32 tensor with the extents of the windows' results

#include <shardwise/graph/functions/pooling.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class T, std::int64_t... E>
using whole = typed<T, sw::shape<E...>, mesh>;
constexpr sw::op_attr windows = sw::pack_attributes(sw::pool_attributes{{2, 2}, {2, 2}});
#ifdef SHARDWISE_FAIL
using y =
    decltype(sw::call<sw::custom::max_pool2d_at, windows>(whole<float, 2, 6, 8, 8>{}, whole<std::int32_t, 2, 6, 8, 8>{}));
#else
using y =
    decltype(sw::call<sw::custom::max_pool2d_at, windows>(whole<float, 2, 6, 8, 8>{}, whole<std::int32_t, 2, 6, 4, 4>{}));
#endif
