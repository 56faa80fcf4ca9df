// SPDX-License-Identifier: Apache-2.0
// A training of a model whose parameters are all frozen.
// expect: train_step: the plan freezes every parameter of the model
#include "grouped_step.hpp"

#ifdef SHARDWISE_FAIL
using made = step<sw::frozen>;
#else
using made = step<sw::at<"net1", sw::frozen>>;
#endif
constexpr auto bytes = made::peak_bytes;
