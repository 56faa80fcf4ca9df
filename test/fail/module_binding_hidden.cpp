// SPDX-License-Identifier: Apache-2.0
// A module over a class template does not say where its binding goes.
// expect: module: which of its template arguments is the binding cannot be told
// expect(types): twice<layer, shardwise::unbound>

#include "declared_step.hpp"

template <class Bound>
using layer = sw::linear<8, 8, Bound>;
template <template <class> class Inner, class Bound = sw::unbound>
struct twice : sw::module<twice<Inner, Bound>, Bound> {
#ifndef SHARDWISE_FAIL
  template <class B>
  using rebound = twice<Inner, B>;
#endif
  SHARDWISE_MEMBERS(Bound, (Inner<sw::unbound>, inner));
  constexpr auto forward(const auto& x) const { return inner(inner(x)); }
};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (twice<layer>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
constexpr auto bytes = step<model>::peak_bytes;
