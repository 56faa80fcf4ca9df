// SPDX-License-Identifier: Apache-2.0
// A dim of run-time extent beside a static one of as many elements as its bound: equal at one size alone.
// expect: a dim with run-time extent (dyn) meets a dim of another operand whose extent is static

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using weight = typed<float, sw::shape<8>, mesh>;
#else
using weight = typed<float, sw::shape<sw::dyn<8>>, mesh>;
#endif
using y = decltype(sw::rms_norm(typed<float, sw::shape<4, sw::dyn<8>>, mesh>{}, weight{}));
