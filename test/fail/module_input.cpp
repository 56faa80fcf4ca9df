// SPDX-License-Identifier: Apache-2.0
// A linear layer of 8 features is called with 6.
// expect: module: the input's last dim differs from the module's number of input features
// expect: shardwise::operand<shardwise::shape<4L?, 6L?>, shardwise::replicate ?>.*linear<8, 6

#include <shardwise/module/bind.hpp>
#include <shardwise/module/layers.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
using plan = sw::plan<>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 6>, mesh>;
#else
using x = typed<float, sw::shape<4, 8>, mesh>;
#endif
using bound = sw::bind<model, plan, mesh>;
using y = decltype(bound{}(x{}));
