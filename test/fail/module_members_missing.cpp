// SPDX-License-Identifier: Apache-2.0
// A module has layers and registers none of them.
// expect: module: it has data, but registers no members
// expect(g++): admitted<model<
// expect(clang): admitted<model<
// expect(nvcc): model<shardwise::unbound>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  sw::linear<8, 8, sw::child<Bound, 0>> net;
#else
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
#endif
  constexpr auto forward(const auto& x) const { return net(x); }
};
constexpr auto bytes = step<model>::peak_bytes;
