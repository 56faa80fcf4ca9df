// SPDX-License-Identifier: Apache-2.0
// A layer of 6 features is split by heads of 4.
// expect: placement: shard<d, block> needs a block that divides the extent of dim d
// expect: shardwise::shape<6L?, 8L?>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"net", sw::colwise<tp, 4>>>;
#else
using plan = sw::plan<sw::at<"net", sw::colwise<tp, 3>>>;
#endif
using bound = sw::bind<one_linear, plan, mesh>;
constexpr auto members = sizeof(bound);
