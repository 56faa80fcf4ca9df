// SPDX-License-Identifier: Apache-2.0
// A style on a list of modules instead of its elements.
// expect: plan: this style does not apply to the module that the path names
// expect: plan_entry<

#include <shardwise/module/bind.hpp>
#include <shardwise/module/hana.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(block, (sw::linear<8, 8, sw::child<Bound, 0>>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  using layers_type = sw::repeat<2, block, sw::child<Bound, 0>>;
  BOOST_HANA_DEFINE_STRUCT(model, (layers_type, layers));
  constexpr auto forward(const auto& x) const { return layers(x); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"layers", sw::prepare_output<tp, sw::replicate>>>;
#else
using plan = sw::plan<sw::at<"layers.*", sw::prepare_output<tp, sw::replicate>>>;
#endif
using bound = sw::bind<model, plan, mesh>;
constexpr auto members = sizeof(bound);
