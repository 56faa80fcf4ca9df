// SPDX-License-Identifier: Apache-2.0
// A style for linear layers on a norm.
// expect: plan: this style does not apply to the module that the path names
// expect: plan_entry<

#include <shardwise/module/bind.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::layer_norm_module<8, sw::child<Bound, 0>>, norm));
  constexpr auto forward(const auto& x) const { return norm(x); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"norm", sw::colwise<tp>>>;
#else
using plan = sw::plan<sw::at<"norm", sw::sequence_parallel<tp>>>;
#endif
using bound = sw::bind<model, plan, mesh>;
constexpr auto members = sizeof(bound);
