// SPDX-License-Identifier: Apache-2.0
// An optimizer's group names a parameter that is frozen by its own path.
// expect: plan: this param_group names a parameter that is frozen
#include "grouped_step.hpp"

#ifdef SHARDWISE_FAIL
using made = step<sw::at<"net1.bias", sw::frozen>, sw::param_group<"no_decay", "bias">>;
#else
using made = step<sw::at<"net1.weight", sw::frozen>, sw::param_group<"no_decay", "bias">>;
#endif
constexpr auto bytes = made::peak_bytes;
