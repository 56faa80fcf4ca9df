// SPDX-License-Identifier: Apache-2.0
// A layer of 6 features is split by heads of 4.
// expect: placement: shard<d, block> needs a block that divides the extent of dim d
// expect: shardwise::shape<6L?, 8L?>

#include <shardwise/module/bind.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"net", sw::colwise<tp, 4>>>;
#else
using plan = sw::plan<sw::at<"net", sw::colwise<tp, 3>>>;
#endif
using bound = sw::bind<model, plan, mesh>;
constexpr auto members = sizeof(bound);
