// SPDX-License-Identifier: Apache-2.0
// pytorch#149768: the epsilon of a clip coefficient is added to every rank's part of the norm.
// expect: add: one operand is partial on a mesh axis and the other is not, so it would be added once per rank

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using gradient = typed<float, sw::shape<8>, mesh, sw::shard<0>>;
using square = decltype(sw::sum(gradient{} * gradient{}));
#ifdef SHARDWISE_FAIL
using y = decltype(square{} + 1e-6);
#else
using y = decltype(sw::redistribute<tp, sw::reduced>(square{}) + 1e-6);
#endif
