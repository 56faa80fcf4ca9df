// SPDX-License-Identifier: Apache-2.0
// A layer is left out of the struct and bound with the index of one that is in it.
// expect: module: a parameter is used that is no registered member of its module, or is a member of a module that is none

#include <shardwise/module/hana.hpp>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 8, sw::child<Bound, 0>>, net1));
  sw::linear<8, 8, sw::child<Bound, 0>> net2;
#else
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 8, sw::child<Bound, 0>>, net1),
                           (sw::linear<8, 8, sw::child<Bound, 1>>, net2));
#endif
  constexpr auto forward(const auto& x) const { return net2(net1(x)); }
};
constexpr auto bytes = step<model>::peak_bytes;
