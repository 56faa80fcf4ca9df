// SPDX-License-Identifier: Apache-2.0
// SHARDWISE_MEMBERS is given members alone.
// expect: child: its first argument, or that of SHARDWISE_MEMBERS, is not the module's binding
// expect: given_member

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  SHARDWISE_MEMBERS((sw::linear<8, 8>, net1), (sw::linear<8, 8>, net2));
#else
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net1), (sw::linear<8, 8>, net2));
#endif
  constexpr auto forward(const auto& x) const { return net2(net1(x)); }
};
constexpr auto bytes = step<model>::peak_bytes;
