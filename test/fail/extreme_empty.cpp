// SPDX-License-Identifier: Apache-2.0
// The largest of no elements.
// expect: max, min: the dim has no elements, so nothing is the largest or the smallest
// expect(types): where<shardwise::detail::custom_tag<shardwise::custom::max>
// expect(text): operation: max

#include <shardwise/graph/functions/extremes.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 0>, sw::mesh<tp>>;
#else
using x = typed<float, sw::shape<4, 6>, sw::mesh<tp>>;
#endif
using y = decltype(sw::max<1>(x{}));
