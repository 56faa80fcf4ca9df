// SPDX-License-Identifier: Apache-2.0
// A padding that sixteen bits do not hold.
// expect: conv2d: stride, dilation and groups are at least 1 and padding at least 0, all but groups at most 32767

#include <shardwise/graph/functions/convolution.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::conv2d<sw::convolution_options{.padding = 65537}>(whole<2, 6, 9, 8>{}, whole<4, 6, 3, 3>{}));
#else
using y = decltype(sw::conv2d<sw::convolution_options{.padding = {2, 1}}>(whole<2, 6, 9, 8>{}, whole<4, 6, 3, 3>{}));
#endif
