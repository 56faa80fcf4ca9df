// SPDX-License-Identifier: Apache-2.0
// An entry of a plan without a style.
// expect: plan: an entry names a path and no style, and would do nothing
// expect(g++): net1|\{110, 101|at<
// expect(clang): net1|\{110, 101|at<

#include <shardwise/module/style.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;
struct tp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using entry = sw::at<"net1">;
#else
using entry = sw::at<"net1", sw::colwise<tp>>;
#endif
constexpr int entries = sw::plan<entry>::entries;
static_assert(entries == 1);
