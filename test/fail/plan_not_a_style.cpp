// SPDX-License-Identifier: Apache-2.0
// A path of a plan is given a placement instead of a style.
// expect: plan: an entry is neither at<path, styles...> nor a style of the whole model such as data_parallel<axis>
// expect(g++): shardwise::shard<0(, 1L?)?>
// expect(clang): shardwise::shard<0(, 1L?)?>

#include <shardwise/module/style.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;
struct tp : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using style = sw::shard<0>;
#else
using style = sw::colwise<tp>;
#endif
constexpr int entries = sw::plan<sw::at<"net1", style>>::entries;
static_assert(entries == 1);
