// SPDX-License-Identifier: Apache-2.0
// A dynamic loss scale on a GPU: the same steps are skipped as on the host, by the same scales, and what is trained is near the host's;
// plain updates, updates over lists and clipped ones.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <place.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <vector>

namespace device_scaler {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<5, 6>, up), (sw::linear<6, 3>, down));
  constexpr auto forward(const auto& x) const { return down(sw::tanh(up(x))); }
};
struct fit {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<8, 5>, sw::on<one, sw::shard<0>>>,
                            sw::input_tensor<float, sw::shape<8, 3>, sw::on<one, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = sw::cast<float>(model(x)) - t;
    return sw::mean(apart * apart);
  }
};
template <class Optimizer, class Pipeline, class Backend>
using step =
    sw::train_step<net, fit,
                   sw::plan<sw::data_parallel<one>, sw::mixed<sw::f16>, sw::dynamic_loss_scale<(std::int64_t{1} << 26), 3>>,
                   mesh, Optimizer, Pipeline, float, Backend>;

struct history {
  std::vector<sw::scaler_state> scaler;
  std::vector<float> parameters;
};
template <class Step, class Rank>
history train(Rank& rank) {
  history h;
  sw::executor<Step, Rank> ex(rank);
  ex.initialise(3);
  for (int s = 1; s <= 20; ++s) {
    std::vector<float> x(40), t(24);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + s));
    for (std::size_t i = 0; i < t.size(); ++i) t[i] = static_cast<float>(std::cos(1.3 * static_cast<double>(i) + s));
    if (s == 17) t[5] = 3e37F;
    ex.set_input(0, x);
    ex.set_input(1, t);
    sw::step_env env;
    env.step = s;
    env.lr = 0.01;
    env.momentum = 0.9;
    env.max_norm = 0.3;
    ex.run(env);
    h.scaler.push_back(ex.scaler_state());
  }
  for (int p = 0; p < ex.parameter_count(); ++p)
    for (const float v : ex.full_parameter(ex.parameter_name(p))) h.parameters.push_back(v);
  return h;
}
template <class Optimizer, class Pipeline>
void check() {
  history host, device;
  sw::launch<mesh>([&](auto& rank) { host = train<step<Optimizer, Pipeline, sw::host_backend>>(rank); });
  sw::launch_cuda<mesh>([&](auto& rank) { device = train<step<Optimizer, Pipeline, sw::cuda_backend>>(rank); });
  REQUIRE(host.scaler.size() == device.scaler.size());
  for (std::size_t s = 0; s < host.scaler.size(); ++s) {
    CHECK(host.scaler[s].scale == device.scaler[s].scale);
    CHECK(host.scaler[s].good_steps == device.scaler[s].good_steps);
    CHECK(host.scaler[s].skipped_steps == device.scaler[s].skipped_steps);
  }
  CHECK(host.scaler.back().skipped_steps > 3);
  CHECK(host.scaler.back().skipped_steps < 16);
  REQUIRE(host.parameters.size() == device.parameters.size());
  for (std::size_t i = 0; i < host.parameters.size(); ++i)
    CHECK(std::fabs(host.parameters[i] - device.parameters[i]) < 5e-3F);
}

TEST_CASE("a dynamic loss scale on a GPU skips the steps that the host skips") {
  if (!test::place::has(1)) return;
  check<sw::adamw<>, sw::pipeline<sw::fuse_kernels>>();
  check<sw::clip_norm<sw::sgd<true>>, sw::pipeline<sw::fuse_kernels>>();
  check<sw::clip_norm<sw::adam<>>, sw::pipeline<sw::fused_optimizer, sw::fuse_kernels>>();
  check<sw::adam<>, sw::pipeline<sw::foreach_optimizer, sw::fuse_kernels>>();
}

}  // namespace device_scaler
