// SPDX-License-Identifier: Apache-2.0
// A row for padding behind the table's last one.
// expect: embedding: the table has no such row for padding

#include <shardwise/graph/functions/rearrange.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using padding = sw::padding_idx<4>;
#else
using padding = sw::padding_idx<-4>;
#endif
using y = decltype(sw::embedding<padding>(typed<float, sw::shape<4, 8>, mesh>{}, typed<std::int32_t, sw::shape<3>, mesh>{}));
