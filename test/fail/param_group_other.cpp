// SPDX-License-Identifier: Apache-2.0
// A run with the numbers of another program's groups.
// expect: run: the numbers that are given are for groups of parameters that this program's plan does not have
#include "grouped_step.hpp"

using made = step<sw::param_group<"no_decay", "bias">>;
#ifdef SHARDWISE_FAIL
using given = sw::env_of<step<sw::param_group<"slow", "bias">>>;
#else
using given = sw::env_of<made>;
#endif
void use(sw::executor<made>& ex, const given& env) { ex.run(env); }
