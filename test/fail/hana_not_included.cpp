// SPDX-License-Identifier: Apache-2.0
// Members are registered by Hana's own macro and its own header, and the library's for it is not included.
// expect: module: its members are registered by BOOST_HANA_DEFINE_STRUCT, which the library reads with one more header
// expect(types): model<shardwise::unbound>

#ifdef SHARDWISE_FAIL
#include <boost/hana/define_struct.hpp>
#else
#include <shardwise/module/hana.hpp>
#endif

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net1),
                           (sw::linear<6, 8, sw::child<Bound, 1>>, net2));
  constexpr auto forward(const auto& x) const { return net2(net1(x)); }
};
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
constexpr auto bytes = step<model, plan>::peak_bytes;
