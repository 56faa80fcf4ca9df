// SPDX-License-Identifier: Apache-2.0
// SHARDWISE_MEMBERS is given the class, as Hana's macro is, instead of its binding.
// expect: child: its first argument, or that of SHARDWISE_MEMBERS, is not the module's binding
// expect(types): model<shardwise::unbound>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  SHARDWISE_MEMBERS(model, (sw::linear<8, 8>, net));
#else
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
#endif
  constexpr auto forward(const auto& x) const { return net(x); }
};
constexpr auto bytes = step<model>::peak_bytes;
