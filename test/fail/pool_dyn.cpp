// SPDX-License-Identifier: Apache-2.0
// A height that is known at run time alone.
// expect: max_pool2d, avg_pool2d, interpolate: height and width are static extents

#include <shardwise/graph/functions/pooling.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::max_pool2d<sw::pool_options{.kernel = 2}>(whole<2, 6, sw::dyn<9>, 8>{}));
#else
using y = decltype(sw::max_pool2d<sw::pool_options{.kernel = 2}>(whole<sw::dyn<9>, 6, 9, 8>{}));
#endif
