// SPDX-License-Identifier: Apache-2.0
// pytorch#163193: ten is added to partial sums, on every rank.
// expect: add: one operand is partial on a mesh axis and the other is not, so it would be added once per rank

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<10>, mesh, sw::partial<>>;
#ifdef SHARDWISE_FAIL
using y = decltype(x{} + 10);
#else
using y = decltype(sw::redistribute<tp, sw::replicate>(x{}) + 10);
#endif
