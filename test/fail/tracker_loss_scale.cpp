// SPDX-License-Identifier: Apache-2.0
// Gradients that a tracker watches flow through f16, and nobody says by what the loss is scaled.
// expect: train_step: gradients flow through sw::f16
// located: cast

#include <shardwise/module/tracker/runs.hpp>
#include <shardwise/shardwise.hpp>

#include "small_models.hpp"

struct tp : sw::axis<1> {};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(sw::cast<float>(model(x))); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::mixed<sw::f16>>;
#else
using plan = sw::plan<sw::mixed<sw::f16>, sw::loss_scale<1024>>;
#endif
using rank = sw::thread_rank<sw::mesh<tp>>;
using model = sw::bind_eager<one_linear, plan, sw::mesh<tp>, float, rank>;
using tensor = decltype(sw::dtensor_of<float, sw::shape<4, 8>, sw::mesh<tp>>::randn(std::declval<sw::eager<rank>&>(), 7));
auto run(sw::module_tracker& tracker, const model& net, const tensor& x) {
  return sw::tracked_value_and_grad<0>(tracker, task{})(net, x);
}
