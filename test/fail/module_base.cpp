// SPDX-License-Identifier: Apache-2.0
// A module copied from another one still derives from that one's base.
// expect: module: it does not derive from sw::module<itself, its binding>
// expect(types): model<shardwise::unbound>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct other : sw::module<other<Bound>, Bound> {
  constexpr auto forward(const auto& x) const { return x; }
};
template <class Bound = sw::unbound>
#ifdef SHARDWISE_FAIL
struct model : sw::module<other<Bound>, Bound> {
#else
struct model : sw::module<model<Bound>, Bound> {
#endif
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
constexpr auto bytes = step<model>::peak_bytes;
