// SPDX-License-Identifier: Apache-2.0
// A group below a module that the model does not have.
// expect: plan: this path names no module of the model
// expect(g++): nearest<
// expect(clang): nearest<
#include "grouped_step.hpp"

#ifdef SHARDWISE_FAIL
using made = step<sw::at<"nett1", sw::param_group<"slow">>>;
#else
using made = step<sw::at<"net1", sw::param_group<"slow">>>;
#endif
constexpr auto bytes = made::peak_bytes;
