// SPDX-License-Identifier: Apache-2.0
// Three groups, four outputs.
// expect: conv2d: the groups do not divide the outputs
// expect(text): outputs: 4; groups: 3

#include <shardwise/graph/functions/convolution.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::conv2d<sw::convolution_options{.groups = 3}>(whole<2, 6, 9, 8>{}, whole<4, 2, 3, 3>{}));
#else
using y = decltype(sw::conv2d<sw::convolution_options{.groups = 3}>(whole<2, 6, 9, 8>{}, whole<6, 2, 3, 3>{}));
#endif
