// SPDX-License-Identifier: Apache-2.0
// A sum over one axis and a maximum over another, resolved in one go.
// expect: redistribute: the tensor is partial with different reductions on two axes
// expect: shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::partial<

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::partial<>, sw::partial<sw::reduction::max>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<sw::on<dp, sw::replicate>, sw::on<tp, sw::replicate>>(x{}));
#else
using y = decltype(sw::redistribute<dp, sw::replicate>(sw::redistribute<tp, sw::replicate>(x{})));
#endif
