// SPDX-License-Identifier: Apache-2.0
// wanted: the weight of the first layer split by rows
// mistake: a placement stands where a style belongs
// names: shard<0
// names: style
// names: colwise|rowwise
#include "mlp.hpp"

#ifdef SHARDWISE_FAIL
using split = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::shard<0>>, sw::at<"net2", sw::rowwise<tp>>>;
#else
using split = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
#endif
static_assert(sw::train_step<mlp, task, split, mesh, sw::adam<>>::peak_bytes > 0);
