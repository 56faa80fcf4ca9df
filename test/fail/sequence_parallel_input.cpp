// SPDX-License-Identifier: Apache-2.0
// The input of a sequence-parallel norm is replicate.
// expect: sequence_parallel: the input must be sharded along the sequence dim on the style's axis
// expect: sequence_parallel<tp.*?> ?, shardwise::operand<float, shardwise::shape<2L?, 4L?, 8L?>, shardwise::replicate ?>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using plan = sw::plan<sw::at<"norm", sw::sequence_parallel<tp>>>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<2, 4, 8>, mesh>;
#else
using x = typed<float, sw::shape<2, 4, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#endif
using bound = sw::bind<one_norm, plan, mesh>;
using y = decltype(bound{}(x{}));
