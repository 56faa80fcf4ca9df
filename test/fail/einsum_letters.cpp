// SPDX-License-Identifier: Apache-2.0
// An equation with fewer letters than its operand has dims.
// expect: einsum: an operand's letters are not as many as its dims

#include <shardwise/graph/functions/einsum.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::einsum<"j,jk->k">(typed<float, sw::shape<4, 8>, mesh>{}, typed<float, sw::shape<8, 3>, mesh>{}));
#else
using y = decltype(sw::einsum<"ij,jk->k">(typed<float, sw::shape<4, 8>, mesh>{}, typed<float, sw::shape<8, 3>, mesh>{}));
#endif
