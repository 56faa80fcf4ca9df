// SPDX-License-Identifier: Apache-2.0
// A style stands in a plan without the module that it is for.
// expect: plan: an entry is neither at<path, styles...> nor a style of the whole model such as data_parallel<axis>
// expect: shardwise::colwise<tp(, 1)?> ?>

#include <shardwise/module/bind.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 8, sw::child<Bound, 0>>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::colwise<tp>>;
#else
using plan = sw::plan<sw::at<"net", sw::colwise<tp>>>;
#endif
using bound = sw::bind<model, plan, mesh>;
constexpr auto members = sizeof(bound);
