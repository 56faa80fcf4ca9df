// SPDX-License-Identifier: Apache-2.0
// Two dims with run-time extents are merged, and the extent that is given says of neither that it scales with it.
// expect: reshape: several dims with run-time extents (dyn) would become one
// expect: give it: extent_product(dyn<8>, dyn<64, 1>), or flatten the dims, or call view with -1
// expect(text): operand: float[dyn<8>, dyn<4, 1>]

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<sw::dyn<8>, sw::dyn<4, 1>>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::reshape<32>(x{}));
#else
using y = decltype(sw::reshape<sw::extent_product(sw::dyn<8>, sw::dyn<4, 1>)>(x{}));
#endif
