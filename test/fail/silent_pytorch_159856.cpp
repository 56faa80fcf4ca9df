// SPDX-License-Identifier: Apache-2.0
// pytorch#159856: the norm of a partial tensor, taken of every rank's share.
// expect: a partial (not yet summed) value enters an operation that is not linear in it, so the result would be wrong

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<8>, mesh, sw::partial<>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::sum(x{} * x{}));
#else
using whole = decltype(sw::redistribute<tp, sw::replicate>(x{}));
using y = decltype(sw::sum(whole{} * whole{}));
#endif
