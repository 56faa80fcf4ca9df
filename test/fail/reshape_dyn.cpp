// SPDX-License-Identifier: Apache-2.0
// A dim with run-time extent is merged with the static dim before it.
// expect: reshape: a dim with run-time extent (dyn) must stay a dim of its own
// expect: where<shardwise::op::reshape, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, -8L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, sw::dyn<8>>, mesh>;
#else
using x = typed<float, sw::shape<sw::dyn<8>, 4>, mesh>;
#endif
using y = decltype(sw::reshape<sw::dyn<32>>(x{}));
