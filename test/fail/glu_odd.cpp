// SPDX-License-Identifier: Apache-2.0
// A dim that glu cannot halve.
// expect: glu: the dim is halved, so its extent must be even

#include <shardwise/graph/functions/activations.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 7>, mesh>;
#else
using x = typed<float, sw::shape<4, 8>, mesh>;
#endif
using y = decltype(sw::glu(x{}));
