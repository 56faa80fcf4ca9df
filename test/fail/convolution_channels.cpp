// SPDX-License-Identifier: Apache-2.0
// A weight for five channels, an image of six.
// expect: conv2d: the image's channels are not those of the weight times the groups
// expect(text): channels: 6; required channels: 5

#include <shardwise/graph/functions/convolution.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::conv2d(whole<2, 6, 9, 8>{}, whole<4, 5, 3, 3>{}));
#else
using y = decltype(sw::conv2d(whole<2, 6, 9, 8>{}, whole<4, 6, 3, 3>{}));
#endif
