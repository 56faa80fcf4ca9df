// SPDX-License-Identifier: Apache-2.0
// The largest of partial sums.
// expect: amax, amin, prod: the operand is partial with another reduction than this one

#include "typed.hpp"

#include <shardwise/graph/functions/reduction_functions.hpp>

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::partial<>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::partial<sw::reduction::max>>>;
#endif
using y = decltype(sw::amax<0>(x{}));
