// SPDX-License-Identifier: Apache-2.0
// A residual connection by +=.
// expect: tensor: += -= *= /= are no operators of tensors
// expect: add_(x, y)

#include <shardwise/graph/functions/mutating_functions.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4, 4>, sw::mesh<tp>>;
constexpr void residual(x& h, const x& more) {
#ifdef SHARDWISE_FAIL
  h += more;
#else
  sw::add_(h, more);
#endif
}
