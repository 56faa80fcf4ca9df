// SPDX-License-Identifier: Apache-2.0
// The blocks of a scalar cannot lie side by side.
// expect: to_local: the ranks' blocks cannot be laid side by side

#include <shardwise/graph/functions/local.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<>, mesh>;
#else
using x = typed<float, sw::shape<1>, mesh>;
#endif
using y = decltype(sw::to_local(x{}));
