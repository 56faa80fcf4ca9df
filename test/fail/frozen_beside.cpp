// SPDX-License-Identifier: Apache-2.0
// frozen, which holds for all below a module, stands beside a style.
// expect: plan: an entry names a mode, frozen or a param_group beside something else
#include "grouped_step.hpp"

#ifdef SHARDWISE_FAIL
using made = step<sw::at<"net1", sw::frozen, sw::prepare_input<dp, sw::shard<0>>>>;
#else
using made = step<sw::at<"net1", sw::frozen>, sw::at<"net1", sw::prepare_input<dp, sw::shard<0>>>>;
#endif
constexpr auto bytes = made::peak_bytes;
