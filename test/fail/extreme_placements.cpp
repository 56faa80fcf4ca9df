// SPDX-License-Identifier: Apache-2.0
// The smallest along a dim that ranks share: each would find its own.
// expect: max, min: the dim is sharded, or the operand partial, and a rank's largest element is not the largest of all
// expect(types): where<shardwise::detail::custom_tag<shardwise::custom::min>
// expect(text): operation: min

#include <shardwise/graph/functions/extremes.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4, 6>, sw::mesh<tp>, sw::shard<1>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::min<1>(x{}));
#else
using y = decltype(sw::min<0>(x{}));
#endif
