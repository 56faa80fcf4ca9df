// SPDX-License-Identifier: Apache-2.0
// A group without a name.
// expect: param_group: its name is empty
#include "grouped_step.hpp"

#ifdef SHARDWISE_FAIL
using made = step<sw::param_group<"", "bias">>;
#else
using made = step<sw::param_group<"no_decay", "bias">>;
#endif
constexpr auto bytes = made::peak_bytes;
