// SPDX-License-Identifier: Apache-2.0
// A probability as a template argument.
// expect: tensor: a probability is a value, no template argument
// expect: dropout(x, 0.1)

#include "typed.hpp"

struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4, 4>, sw::mesh<tp>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::dropout<1>(x{}));
#else
using y = decltype(sw::dropout(x{}, 0.1));
#endif
