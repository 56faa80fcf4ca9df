// SPDX-License-Identifier: Apache-2.0
// An opaque function of summands: nothing says that it is linear.
// expect: a partial (not yet summed) value enters an operation that is not linear in it

#include <shardwise/module/function.hpp>

#include "opaque_square.hpp"

#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::partial<>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh>;
#endif
using y = decltype(sw::opaque<square>(x{}));
