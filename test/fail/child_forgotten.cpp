// SPDX-License-Identifier: Apache-2.0
// A layer is not bound.
// expect: child: a member is not bound, so a plan cannot reach its parameters
// expect(types): model<shardwise::unbound>
// expect(g++): member_named<shardwise::fixed_string<5>{"net2"}
// expect(clang): member_named<shardwise::fixed_string<5>{"net2"}
// expect(nvcc): member_named<shardwise::fixed_string<5UL>{{'n', 'e', 't', '2', '.000'}}
// expect: linear<6, 8.*required<1>

#include <shardwise/module/hana.hpp>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net1), (sw::linear<6, 8, sw::unbound>, net2));
#else
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net1),
                           (sw::linear<6, 8, sw::child<Bound, 1>>, net2));
#endif
  constexpr auto forward(const auto& x) const { return net2(net1(x)); }
};
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
constexpr auto bytes = step<model, plan>::peak_bytes;
