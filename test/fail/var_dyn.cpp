// SPDX-License-Identifier: Apache-2.0
// A variance over a dim with run-time extent, whose number of elements is not known while compiling.
// expect: var, std: a reduced dim has a run-time extent

#include "typed.hpp"

#include <shardwise/graph/functions/reduction_functions.hpp>

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<sw::dyn<8>, 4>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::var<0>(x{}));
#else
using y = decltype(sw::var<1>(x{}));
#endif
