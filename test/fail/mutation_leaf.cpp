// SPDX-License-Identifier: Apache-2.0
// A model that writes its own weight, through a view, while it is trained.
// expect: a leaf Variable that requires grad is being used in an in-place operation

#include <shardwise/graph/functions/mutating_functions.hpp>

#include "small_step.hpp"

template <class Bound = sw::unbound>
struct clipped : sw::module<clipped<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net));
  constexpr auto forward(const auto& x) const {
#ifdef SHARDWISE_FAIL
    sw::clamp_max_(sw::narrow<0, 0, 3>(net.weight), 1);
    return net(x);
#else
    const auto h = net(x);
    return sw::clamp_max_(h, 1);
#endif
  }
};
using step = sw::train_step<clipped, mean_task, plan, mesh>;
constexpr int nodes = step::program.node_count;
