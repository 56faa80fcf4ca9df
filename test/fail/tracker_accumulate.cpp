// SPDX-License-Identifier: Apache-2.0
// A tracked run of a step that takes its batch in pieces.
// expect: run_tracked: the step has passes that write its program anew

#include <shardwise/module/tracker/runs.hpp>
#include <shardwise/shardwise.hpp>

#include "small_models.hpp"

struct tp : sw::axis<1> {};
using mesh = sw::mesh<tp>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<tp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(x)); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::data_parallel<tp>, sw::accumulate<2>>;
#else
using plan = sw::plan<sw::data_parallel<tp>>;
#endif
using step = sw::train_step<one_linear, task, plan, mesh, sw::sgd<>>;
void run(sw::module_tracker& tracker, sw::executor<step>& one) { sw::run_tracked(tracker, one, sw::step_env{}); }
