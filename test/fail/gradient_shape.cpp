// SPDX-License-Identifier: Apache-2.0
// An optimizer step with the gradient of another parameter.
// expect: optimizer: parameter and gradient have different extents or element types
// expect: shardwise::operand<float, shardwise::shape<8L?>, shardwise::replicate ?>, shardwise::operand<float, shardwise::shape<4L?>, shardwise::replicate ?>

#include <shardwise/module/optimizer.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using weight = typed<float, sw::shape<8>, mesh>;
#ifdef SHARDWISE_FAIL
using gradient = typed<float, sw::shape<4>, mesh>;
#else
using gradient = typed<float, sw::shape<8>, mesh>;
#endif
constexpr bool ok = sw::checked_update<weight, gradient>::ok;
