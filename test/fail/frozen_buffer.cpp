// SPDX-License-Identifier: Apache-2.0
// frozen for a buffer, which no optimizer updates.
// expect: plan: this entry freezes modules that have no parameters, or a buffer
#include "grouped_step.hpp"

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 10>, net1), (sw::parameter<sw::shape<10>, sw::init::ones>, scale),
                    (sw::buffer<sw::shape<10>, sw::init::zeros>, shift));
  constexpr auto forward(const auto& x) const { return net1(x) * scale + shift; }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"shift", sw::frozen>>;
#else
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"scale", sw::frozen>>;
#endif
constexpr auto bytes = sw::train_step<model, task, plan, mesh>::peak_bytes;
