// SPDX-License-Identifier: Apache-2.0
// A kernel that is wider than the image with its padding.
// expect: conv2d: the kernel, with its dilation, is larger than the padded image
// expect(text): kernel: 11; padded extent: 10

#include <shardwise/graph/functions/convolution.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y =
    decltype(sw::conv2d<sw::convolution_options{.padding = 1, .dilation = 2}>(whole<2, 6, 9, 8>{}, whole<4, 6, 3, 6>{}));
#else
using y =
    decltype(sw::conv2d<sw::convolution_options{.padding = 1, .dilation = 2}>(whole<2, 6, 9, 8>{}, whole<4, 6, 3, 5>{}));
#endif
