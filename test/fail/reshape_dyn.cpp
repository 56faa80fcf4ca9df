// SPDX-License-Identifier: Apache-2.0
// A run-time extent would become two static ones.
// expect: reshape: a dim with run-time extent (dyn) would become dims that do not scale with the same run-time sizes

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<sw::dyn<8>, 4>, mesh>;
#else
using x = typed<float, sw::shape<8, 4>, mesh>;
#endif
using y = decltype(sw::reshape<4, 8>(x{}));
