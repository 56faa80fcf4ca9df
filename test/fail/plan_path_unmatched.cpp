// SPDX-License-Identifier: Apache-2.0
// A plan names a module that the model does not have.
// expect: plan: this path names no module of the model
// expect(g++): "nett1"}, shardwise::colwise<tp.*nearest<shardwise::fixed_string<5>{"net1"}, shardwise::fixed_string<5>{"net2"}
// expect(clang): "nett1"}, shardwise::colwise<tp.*nearest<shardwise::fixed_string<5>{"net1"}, shardwise::fixed_string<5>{"net2"}
// expect(nvcc): 'n', 'e', 't', 't', '1', .*nearest<shardwise::fixed_string<5UL>{{'n', 'e', 't', '1', '.000'}}
#include <shardwise/module/bind.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(mlp, (sw::linear<10, 16, sw::child<Bound, 0>>, net1),
                           (sw::linear<16, 10, sw::child<Bound, 1>>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::at<"nett1", sw::colwise<tp>>>;
#else
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>>>;
#endif
using bound = sw::bind<mlp, plan, mesh>;
constexpr auto members = sizeof(bound);
