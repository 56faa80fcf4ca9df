// SPDX-License-Identifier: Apache-2.0
// One of two values to choose from is a partial sum.
// expect: where: one of the two values is partial on a mesh axis and the other is not

#include "typed.hpp"

#include <shardwise/graph/functions/pointwise_functions.hpp>

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using b = typed<float, sw::shape<4, 8>, mesh>;
#else
using b = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::partial<>>>;
#endif
using a = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::partial<>>>;
using mask = typed<std::int32_t, sw::shape<8>, mesh>;
using y = decltype(sw::where(mask{}, a{}, b{}));
