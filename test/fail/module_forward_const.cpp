// SPDX-License-Identifier: Apache-2.0
// A module's forward is not const.
// expect: module: its forward is not const
// expect: model<shardwise::binding<

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
#ifdef SHARDWISE_FAIL
  constexpr auto forward(const auto& x) { return net(x); }
#else
  constexpr auto forward(const auto& x) const { return net(x); }
#endif
};
constexpr auto bytes = step<model>::peak_bytes;
