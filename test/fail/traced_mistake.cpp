// SPDX-License-Identifier: Apache-2.0
// A mistake in a model's forward is one error, however much of the step follows from it.
// expect: module: the input's last dim differs from the module's number of input features

#include "small_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net1), (sw::linear<6, 8>, net2));
  constexpr auto forward(const auto& x) const {
#ifdef SHARDWISE_FAIL
    return net2(sw::softmax(net1(sw::permute<1, 0>(x))));
#else
    return net2(sw::softmax(net1(x)));
#endif
  }
};
using step = sw::train_step<model, mean_task, plan, mesh>;
constexpr int nodes = step::program.node_count;
