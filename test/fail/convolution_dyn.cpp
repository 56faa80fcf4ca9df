// SPDX-License-Identifier: Apache-2.0
// Images whose height is known only at run time.
// expect: conv2d: a run-time extent may be the batch

#include <shardwise/graph/functions/convolution.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <std::int64_t... E>
using whole = typed<float, sw::shape<E...>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::conv2d(typed<float, sw::shape<2, 6, sw::dyn<9>, 8>, mesh>{}, whole<4, 6, 3, 3>{}));
#else
using y = decltype(sw::conv2d(typed<float, sw::shape<sw::dyn<2>, 6, 9, 8>, mesh>{}, whole<4, 6, 3, 3>{}));
#endif
