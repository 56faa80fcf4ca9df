// SPDX-License-Identifier: Apache-2.0
// A style stands in a plan without the module that it is for.
// expect: plan: an entry is neither at<path, styles...> nor a style of the whole model such as data_parallel<axis>
// expect: shardwise::colwise<tp(, 1L?)?> ?>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::colwise<tp>>;
#else
using plan = sw::plan<sw::at<"net", sw::colwise<tp>>>;
#endif
using bound = sw::bind<one_linear, plan, mesh>;
constexpr auto members = sizeof(bound);
