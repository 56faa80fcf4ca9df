// SPDX-License-Identifier: Apache-2.0
// A layer is left out of the members.
// expect: module: it is called, but no plan has bound it: it is no registered member of the module that calls it
// expect: linear<6, 8

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net1));
  sw::linear<6, 8> net2;
#else
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net1), (sw::linear<6, 8>, net2));
#endif
  constexpr auto forward(const auto& x) const { return net2(net1(x)); }
};
constexpr auto bytes = step<model>::peak_bytes;
