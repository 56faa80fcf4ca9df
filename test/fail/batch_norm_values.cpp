// SPDX-License-Identifier: Apache-2.0
// Training of one image of one pixel.
// expect: batch_norm: training needs more than 1 value per channel

#include <shardwise/graph/functions/channel_norms.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
inline constexpr sw::batch_norm_options train{.training = true};
#ifdef SHARDWISE_FAIL
using y = decltype(sw::batch_norm<train>(whole<1, 6, 1, 1>{}, whole<6>{}, whole<6>{}));
#else
using y = decltype(sw::batch_norm(whole<1, 6, 1, 1>{}, whole<6>{}, whole<6>{}));
#endif
