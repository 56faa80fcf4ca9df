// SPDX-License-Identifier: Apache-2.0
// An eager model's gradients under a scale that a compiled step would adjust.
// expect: value_and_grad: the plan has a dynamic_loss_scale

#include <shardwise/module/eager_gradient.hpp>
#include <shardwise/shardwise.hpp>

#include "small_models.hpp"

struct tp : sw::axis<1> {};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(sw::cast<float>(model(x))); }
};
#ifdef SHARDWISE_FAIL
using plan = sw::plan<sw::mixed<sw::f16>, sw::dynamic_loss_scale<>>;
#else
using plan = sw::plan<sw::mixed<sw::f16>, sw::loss_scale<1024>>;
#endif
using rank = sw::thread_rank<sw::mesh<tp>>;
using model = sw::bind_eager<one_linear, plan, sw::mesh<tp>, float, rank>;
using tensor = decltype(sw::dtensor_of<float, sw::shape<4, 8>, sw::mesh<tp>>::randn(std::declval<sw::eager<rank>&>(), 7));
auto run(const model& net, const tensor& x) { return sw::value_and_grad(task{})(net, x); }
