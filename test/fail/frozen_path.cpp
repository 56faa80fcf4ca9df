// SPDX-License-Identifier: Apache-2.0
// A frozen parameter's path is misspelt.
// expect: plan: this path names no module of the model, and for frozen no parameter
// expect(g++): nearest<shardwise::fixed_string<12>{"net1.weight"}
// expect(clang): nearest<shardwise::fixed_string<12>{"net1.weight"}
// expect(text): plan_entry: at<"net1.wieght", frozen>; nearest: "net1.weight"
#include "grouped_step.hpp"

#ifdef SHARDWISE_FAIL
using made = step<sw::at<"net1.wieght", sw::frozen>>;
#else
using made = step<sw::at<"net1.weight", sw::frozen>>;
#endif
constexpr auto bytes = made::peak_bytes;
