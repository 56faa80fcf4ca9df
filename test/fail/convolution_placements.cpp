// SPDX-License-Identifier: Apache-2.0
// An image whose rows are cut in blocks of three, six and three of nine: halos are those of equal shards.
// expect: conv2d: images and weights are cut along the batch
// expect(types): where<shardwise::detail::custom_tag<shardwise::custom::conv2d>
// expect(text): operation: conv2d

#include <shardwise/graph/functions/convolution.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::conv2d(typed<float, sw::shape<2, 6, 9, 8>, mesh, sw::shard<2, 3>>{},
                              typed<float, sw::shape<4, 6, 3, 3>, mesh, sw::reduced>{}));
#else
using y = decltype(sw::conv2d(typed<float, sw::shape<2, 6, 9, 8>, mesh, sw::shard<2>>{},
                              typed<float, sw::shape<4, 6, 3, 3>, mesh, sw::reduced>{}));
#endif
