// SPDX-License-Identifier: Apache-2.0
// Two layers are registered as an array, which no path reaches.
// expect: module: a registered member is neither a module, nor a list of modules (sw::repeat), nor an sw::parameter
// expect(types): model<shardwise::unbound>.*member_named<.*std::array<shardwise::linear<8, 8

#include "declared_step.hpp"

#include <array>

template <class Bound>
struct layer : sw::module<layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, fc));
  constexpr auto forward(const auto& x) const { return fc(x); }
};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  SHARDWISE_MEMBERS(Bound, (std::array<sw::linear<8, 8>, 2>, nets));
  constexpr auto forward(const auto& x) const { return nets[1](nets[0](x)); }
#else
  SHARDWISE_MEMBERS(Bound, (sw::repeat<2, layer>, nets));
  constexpr auto forward(const auto& x) const { return nets(x); }
#endif
};
constexpr auto bytes = step<model>::peak_bytes;
