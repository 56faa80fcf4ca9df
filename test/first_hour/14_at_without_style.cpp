// SPDX-License-Identifier: Apache-2.0
// wanted: an entry for the first layer
// mistake: the style is left out
// names: net1|path
// names: style
// names: give|add|name|at<
#include "mlp.hpp"

#ifdef SHARDWISE_FAIL
using split = sw::plan<sw::data_parallel<dp>, sw::at<"net1">, sw::at<"net2", sw::rowwise<tp>>>;
#else
using split = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
#endif
static_assert(sw::train_step<mlp, task, split, mesh, sw::adam<>>::peak_bytes > 0);
