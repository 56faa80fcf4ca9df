// SPDX-License-Identifier: Apache-2.0
// A gradient is summed over an axis twice.
// expect: reduce_gradient: the gradient is not partial on this mesh axis, so reducing it again would count it once per rank
// expect(types): <tp, shardwise::operand<float, shardwise::shape<8L?>, shardwise::replicate ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using gradient = typed<float, sw::shape<8>, mesh, sw::on<tp, sw::partial<>>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::reduce_gradient<tp>(sw::reduce_gradient<tp>(gradient{})));
#else
using y = decltype(sw::reduce_gradient<tp>(gradient{}));
#endif
