// SPDX-License-Identifier: Apache-2.0
// A member's type is a module's template without its brackets.
// expect: members: a module's template stands where a member's type belongs; give it its arguments
// expect: layer<shardwise::unbound ?>

#include <shardwise/module/layers.hpp>

namespace sw = shardwise;

template <class Bound = sw::unbound>
struct layer : sw::module<layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
#ifdef SHARDWISE_FAIL
#define MEMBER layer
#else
#define MEMBER layer<>
#endif
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (MEMBER, first), (layer<>, second));
  constexpr auto forward(const auto& x) const { return second(first(x)); }
};
constexpr auto size = sizeof(model<>);
