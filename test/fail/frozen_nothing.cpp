// SPDX-License-Identifier: Apache-2.0
// frozen for a module that has no parameters.
// expect: plan: this entry freezes modules that have no parameters
#include "grouped_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 10>, net1), (sw::dropout_module<1, 10>, drop), (sw::linear<10, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(drop(net1(x))); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"drop", sw::frozen>>;
#else
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::frozen>>;
#endif
constexpr auto bytes = sw::train_step<model, task, plan, mesh>::peak_bytes;
