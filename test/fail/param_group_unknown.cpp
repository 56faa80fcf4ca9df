// SPDX-License-Identifier: Apache-2.0
// The numbers of a group that the plan does not have.
// expect: group: the plan has no param_group of this name
// expect(text): asked for: "no_decays"; groups: "no_decay"
#include "grouped_step.hpp"

using made = step<sw::param_group<"no_decay", "bias">>;
#ifdef SHARDWISE_FAIL
constexpr auto& rate(sw::env_of<made>& env) { return env.group<"no_decays">().lr; }
#else
constexpr auto& rate(sw::env_of<made>& env) { return env.group<"no_decay">().lr; }
#endif
