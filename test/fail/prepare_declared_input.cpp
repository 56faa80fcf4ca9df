// SPDX-License-Identifier: Apache-2.0
// An input is prepared from shards of the batch, and a replicate one arrives.
// expect: style: the input is not placed as the style's input<...> option declares
// expect: shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::replicate ?>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using plan = sw::plan<sw::at<"net", sw::prepare_input<tp, sw::replicate, sw::shard<0>>>>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 8>, mesh>;
#else
using x = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#endif
using bound = sw::bind<one_linear, plan, mesh>;
using y = decltype(bound{}(x{}));
