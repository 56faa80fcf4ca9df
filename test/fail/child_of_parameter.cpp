// SPDX-License-Identifier: Apache-2.0
// Two parameters are bound with each other's index: a style would place the one by the other's name.
// expect: child: a member is bound with another index than its place among the registered members
// expect(types): scale_by<shardwise::unbound>
// expect: given<1>, shardwise::required<0>

#include <shardwise/module/hana.hpp>

#include "declared_step.hpp"

template <class Bound = sw::unbound>
struct scale_by : sw::module<scale_by<Bound>, Bound> {
#ifdef SHARDWISE_FAIL
  using weight_type = sw::parameter<sw::shape<8>, sw::init::ones, sw::child<Bound, 1>>;
  using bias_type = sw::parameter<sw::shape<8>, sw::init::zeros, sw::child<Bound, 0>>;
#else
  using weight_type = sw::parameter<sw::shape<8>, sw::init::ones, sw::child<Bound, 0>>;
  using bias_type = sw::parameter<sw::shape<8>, sw::init::zeros, sw::child<Bound, 1>>;
#endif
  BOOST_HANA_DEFINE_STRUCT(scale_by, (weight_type, weight), (bias_type, bias));
  constexpr auto forward(const auto& x) const { return x * weight + bias; }
};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (scale_by<>, scaled));
  constexpr auto forward(const auto& x) const { return scaled(x); }
};
constexpr auto bytes = step<model>::peak_bytes;
