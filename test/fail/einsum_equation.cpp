// SPDX-License-Identifier: Apache-2.0
// An equation whose result has a letter that no operand has.
// expect: einsum: the equation is not one

#include <shardwise/graph/functions/einsum.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::einsum<"ij,jk->il">(typed<float, sw::shape<4, 8>, mesh>{}, typed<float, sw::shape<8, 3>, mesh>{}));
#else
using y = decltype(sw::einsum<"ij,jk->ik">(typed<float, sw::shape<4, 8>, mesh>{}, typed<float, sw::shape<8, 3>, mesh>{}));
#endif
