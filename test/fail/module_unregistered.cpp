// SPDX-License-Identifier: Apache-2.0
// A bound layer is left out of the struct.
// expect: module: it is called, but no plan has bound it: it is no registered member of the module that calls it
// expect: linear<6, 8

#include <shardwise/module/hana.hpp>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net1));
  sw::linear<6, 8, sw::child<Bound, 1>> net2;
#else
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net1),
                           (sw::linear<6, 8, sw::child<Bound, 1>>, net2));
#endif
  constexpr auto forward(const auto& x) const { return net2(net1(x)); }
};
constexpr auto bytes = step<model>::peak_bytes;
