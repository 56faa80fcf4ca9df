// SPDX-License-Identifier: Apache-2.0
// A slice that leaves its dim.
// expect: slice: the range leaves the dim's extent
// expect: where<shardwise::op::slice, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?> ?>
// expect(text): operation: slice; operand: float[4, 8] (tp: replicate); mesh: "tp" of 2; dim: 1; end of the slice: 9; extent: 8

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::slice<1, 6, 3>(x{}));
#else
using y = decltype(sw::slice<1, 5, 3>(x{}));
#endif
