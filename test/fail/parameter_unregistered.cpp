// SPDX-License-Identifier: Apache-2.0
// A parameter is left out of the members.
// expect: module: a parameter is used that is no registered member of its module, or is a member of a module that is none
// expect: parameter_decl<shardwise::shape<8

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
  sw::parameter<sw::shape<8>, sw::init::ones> scale;
#else
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net), (sw::parameter<sw::shape<8>, sw::init::ones>, scale));
#endif
  constexpr auto forward(const auto& x) const { return net(x) * scale; }
};
constexpr auto bytes = step<model>::peak_bytes;
