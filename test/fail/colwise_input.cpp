// SPDX-License-Identifier: Apache-2.0
// The input of a column-wise layer is sharded along the style's axis.
// expect: colwise: the input must be replicate or reduced on the style's axis
// expect: colwise<tp.*?> ?, shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<0(, 1L?)?> ?>
// expect(text): style: colwise<tp>; operand: float[4, 8] (

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using plan = sw::plan<sw::at<"net", sw::colwise<tp>>>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh>;
#endif
using bound = sw::bind<one_linear, plan, mesh>;
using y = decltype(bound{}(x{}));
