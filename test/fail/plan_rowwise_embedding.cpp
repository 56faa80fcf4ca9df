// SPDX-License-Identifier: Apache-2.0
// An embedding sharded by rows.
// expect: plan: this style does not apply to the module that the path names
// expect: plan_entry<

#include <shardwise/module/bind.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::embedding_table<100, 8, sw::child<Bound, 0>>, table));
  constexpr auto forward(const auto& x) const { return table(x); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"table", sw::rowwise<tp>>>;
#else
using plan = sw::plan<sw::at<"table", sw::colwise<tp>>>;
#endif
using bound = sw::bind<model, plan, mesh>;
constexpr auto members = sizeof(bound);
