// SPDX-License-Identifier: Apache-2.0
// An image without a batch.
// expect: conv2d: images are of four dims
// expect(text): rank: 3; required rank: 4

#include <shardwise/graph/functions/convolution.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::conv2d(whole<6, 9, 8>{}, whole<4, 6, 3, 3>{}));
#else
using y = decltype(sw::conv2d(whole<1, 6, 9, 8>{}, whole<4, 6, 3, 3>{}));
#endif
