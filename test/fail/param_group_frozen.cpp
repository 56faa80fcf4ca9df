// SPDX-License-Identifier: Apache-2.0
// An optimizer's group names a frozen parameter.
// expect: plan: this param_group names a parameter that is frozen
#include "grouped_step.hpp"

#ifdef SHARDWISE_FAIL
using made = step<sw::at<"net1", sw::frozen>, sw::param_group<"no_decay", "bias">>;
#else
using made = step<sw::at<"net1", sw::frozen>, sw::at<"net2", sw::param_group<"no_decay", "bias">>>;
#endif
constexpr auto bytes = made::peak_bytes;
