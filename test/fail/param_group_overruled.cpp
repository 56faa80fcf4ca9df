// SPDX-License-Identifier: Apache-2.0
// A group all of whose parameters a later entry takes.
// expect: plan: every parameter that this param_group names is in the group of a later entry
#include "grouped_step.hpp"

#ifdef SHARDWISE_FAIL
using made = step<sw::param_group<"no_decay", "bias">, sw::param_group<"slow">>;
#else
using made = step<sw::param_group<"slow">, sw::param_group<"no_decay", "bias">>;
#endif
constexpr auto bytes = made::peak_bytes;
