// SPDX-License-Identifier: Apache-2.0
// Padding "same" and a stride of 2.
// expect: conv2d: same padding keeps height and width at a stride of 1 alone; give the padding as numbers, or a stride of 1

#include <shardwise/graph/functions/convolution.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y =
    decltype(sw::conv2d<sw::convolution_options{.stride = 2, .padding = "same"}>(whole<2, 6, 9, 8>{}, whole<4, 6, 3, 3>{}));
#else
using y =
    decltype(sw::conv2d<sw::convolution_options{.stride = 1, .padding = "same"}>(whole<2, 6, 9, 8>{}, whole<4, 6, 3, 3>{}));
#endif
