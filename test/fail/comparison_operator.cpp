// SPDX-License-Identifier: Apache-2.0
// Tensors compared by an operator.
// expect: are no operators of tensors; gt, lt, ge, le, eq and ne give an int32 tensor

#include <shardwise/graph/functions/pointwise_functions.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4, 4>, sw::mesh<tp>>;
#ifdef SHARDWISE_FAIL
using y = decltype(x{} > 0);
#else
using y = decltype(sw::gt(x{}, 0.));
#endif
