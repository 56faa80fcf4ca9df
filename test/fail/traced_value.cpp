// SPDX-License-Identifier: Apache-2.0
// A number asked of a traced tensor.
// expect: traced tensor: it has no value while its program is made
// expect: read it from the executor: loss(), output(i)

#include "typed.hpp"

struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<>, sw::mesh<tp>>;
#ifdef SHARDWISE_FAIL
using y = decltype(x{}.item());
#else
using y = decltype(sw::scale(x{}, 2));
#endif
