// SPDX-License-Identifier: Apache-2.0
// A padding of more than half the kernel.
// expect: max_pool2d, avg_pool2d: kernel, stride and dilation are at least 1, padding at most half of a window

#include <shardwise/graph/functions/pooling.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::avg_pool2d<sw::pool_options{.kernel = 3, .padding = 2}>(whole<2, 6, 9, 8>{}));
#else
using y = decltype(sw::avg_pool2d<sw::pool_options{.kernel = 3, .padding = 1}>(whole<2, 6, 9, 8>{}));
#endif
