// SPDX-License-Identifier: Apache-2.0
// A style is given to a buffer.
// expect: plan: this path names a parameter or buffer, and styles and modes apply to modules
// expect: plan_entry<
#include "buffer_step.hpp"

struct forward {
  constexpr auto operator()(const auto& h, const auto& running_mean) const { return h - running_mean; }
};
#ifdef SHARDWISE_FAIL
using placed = sw::plan<sw::data_parallel<dp>, sw::at<"running_mean", sw::prepare_input<dp, sw::replicate>>>;
#else
using placed = sw::plan<sw::data_parallel<dp>>;
#endif
constexpr auto bytes = sw::train_step<models<forward>::template model_of, mean_task, placed, mesh>::peak_bytes;
