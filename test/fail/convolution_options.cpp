// SPDX-License-Identifier: Apache-2.0
// A stride of 0.
// expect: conv2d: stride, dilation and groups are at least 1 and padding at least 0

#include <shardwise/graph/functions/convolution.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::conv2d<sw::convolution_options{.stride = 0}>(whole<2, 6, 9, 8>{}, whole<4, 6, 3, 3>{}));
#else
using y = decltype(sw::conv2d<sw::convolution_options{.stride = {2, 1}}>(whole<2, 6, 9, 8>{}, whole<4, 6, 3, 3>{}));
#endif
