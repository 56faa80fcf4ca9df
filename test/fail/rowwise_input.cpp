// SPDX-License-Identifier: Apache-2.0
// A row-wise layer without a column-wise one before it: its input is sharded along the batch.
// expect: rowwise: the input must be sharded along its last dim on the style's axis, or whole there
// expect: rowwise<tp.*?> ?, shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::shard<0(, 1L?)?> ?>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using plan = sw::plan<sw::at<"net", sw::rowwise<tp>>>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#endif
using bound = sw::bind<one_linear, plan, mesh>;
using y = decltype(bound{}(x{}));
