// SPDX-License-Identifier: Apache-2.0
// A plan of 33 entries.
// expect: plan: more than 32 entries

#include <shardwise/module/style.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using e = sw::at<"net?", sw::colwise<tp>>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e>;
#else
using plan = sw::plan<e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e, e>;
#endif
constexpr int entries = plan::entries;
