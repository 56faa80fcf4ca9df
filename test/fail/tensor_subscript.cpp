// SPDX-License-Identifier: Apache-2.0
// A tensor indexed by [].
// expect: tensor: [] is no operator of tensors
// expect: select<dim, index>(x)

#include <shardwise/graph/functions/views.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4, 4>, sw::mesh<tp>>;
#ifdef SHARDWISE_FAIL
using y = decltype(x{}[0]);
#else
using y = decltype(sw::select<0, 0>(x{}));
#endif
