// SPDX-License-Identifier: Apache-2.0
// Two styles of one entry place a weight on the same axis.
// expect: plan: two styles of one entry place the parameters of a module on the same mesh axis
// expect: plan_entry<

#include <shardwise/module/bind.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(mlp, (sw::linear<10, 16, sw::child<Bound, 0>>, net1),
                           (sw::linear<16, 10, sw::child<Bound, 1>>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>, sw::rowwise<tp>>>;
#else
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>, sw::rowwise<dp>>>;
#endif
using bound = sw::bind<mlp, plan, mesh>;
constexpr auto members = sizeof(bound);
