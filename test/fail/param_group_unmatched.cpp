// SPDX-License-Identifier: Apache-2.0
// A group whose pattern no parameter has.
// expect: plan: this param_group has no parameter
// expect(g++): nearest<shardwise::fixed_string<5>{"bias"}
// expect(clang): nearest<shardwise::fixed_string<5>{"bias"}
// expect(text): plan_entry: at<"net*", param_group<"no_decay", "biass">>; nearest: "bias"
#include "grouped_step.hpp"

#ifdef SHARDWISE_FAIL
using made = step<sw::at<"net*", sw::param_group<"no_decay", "biass">>>;
#else
using made = step<sw::at<"net*", sw::param_group<"no_decay", "bias">>>;
#endif
constexpr auto bytes = made::peak_bytes;
