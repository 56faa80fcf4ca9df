// SPDX-License-Identifier: Apache-2.0
// A module drops its binding on the way to its base: the plan's styles would never run.
// expect: module: it does not derive from sw::module<itself, its binding>
// expect(types): block<shardwise::unbound>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
#ifdef SHARDWISE_FAIL
struct block : sw::module<block<Bound>, sw::unbound> {
#else
struct block : sw::module<block<Bound>, Bound> {
#endif
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (block<>, first), (block<>, second));
  constexpr auto forward(const auto& x) const { return second(first(x)); }
};
constexpr auto bytes = step<model>::peak_bytes;
