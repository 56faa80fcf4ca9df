// SPDX-License-Identifier: Apache-2.0
// wanted: a data-parallel step
// mistake: the batch is split, but no style says that gradients are to be summed
// names: replicate
// names: reduced|summed
// names: data_parallel|the plan
#include "mlp.hpp"

#ifdef SHARDWISE_FAIL
using split = sw::plan<sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
#else
using split = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
#endif
static_assert(sw::train_step<mlp, task, split, mesh, sw::adam<>>::peak_bytes > 0);
