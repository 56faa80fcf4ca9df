// SPDX-License-Identifier: Apache-2.0
// Checkpoints of programs on GPUs, with flat parameters and without: saved there and loaded on the host, and the other way round, every
// element is what was saved; weights in one file.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <files.hpp>
#include <place.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>

#include <cmath>
#include <string>
#include <type_traits>
#include <vector>

namespace device_checkpoints {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<5, 7>, up), (sw::linear<7, 3>, down));
  constexpr auto forward(const auto& x) const { return down(sw::tanh(up(x))); }
};
template <int D>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<12, 5>, sw::on<dp<D>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto y = model(x);
    return sw::mean(y * y);
  }
};
template <int D, class Backend, class... Options>
using step = sw::train_step<net, fit<D>, sw::plan<sw::fully_shard<dp<D>, Options...>>, sw::mesh<dp<D>>, sw::adam<>,
                            sw::pipeline<>, float, Backend>;

template <class Executor>
void train(Executor& ex, int from, int to) {
  for (int s = from; s <= to; ++s) {
    std::vector<float> x(60);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + s));
    ex.set_input(0, x);
    sw::step_env env;
    env.step = s;
    env.lr = 0.03;
    ex.run(env);
  }
}
template <class Executor>
std::vector<std::vector<float>> everything(Executor& ex) {
  std::vector<std::vector<float>> all;
  for (int i = 0; i < ex.parameter_count(); ++i) {
    all.push_back(ex.full_parameter(ex.parameter_name(i)));
    all.push_back(ex.full_state(ex.parameter_name(i), sw::moment::first));
    all.push_back(ex.full_state(ex.parameter_name(i), sw::moment::second));
  }
  return all;
}

template <int D, class... Options>
void check_both_ways() {
  if (!test::on_devices::has(D)) return;
  using device_step = step<D, sw::cuda_backend, Options...>;
  using host_step = step<3, sw::host_backend>;
  const test::folder scratch;
  std::vector<std::vector<float>> then, end, moved;
  sw::launch_cuda<sw::mesh<dp<D>>>([&](auto& rank) {
    sw::executor<device_step, std::remove_reference_t<decltype(rank)>> ex(rank), again(rank);
    ex.initialise(3);
    train(ex, 1, 3);
    sw::save(ex, scratch.path(), {.step = 3});
    const auto a = everything(ex);
    train(ex, 4, 6);
    const auto b = everything(ex);
    CHECK(sw::load(again, scratch.path()).step == 3);
    CHECK(everything(again) == a);
    train(again, 4, 6);
    CHECK(everything(again) == b);
    sw::save_weights(ex, scratch / "weights");
    again.initialise(9);
    sw::load_weights(again, scratch / "weights");
    for (int i = 0; i < ex.parameter_count(); ++i)
      CHECK(again.full_parameter(ex.parameter_name(i)) == ex.full_parameter(ex.parameter_name(i)));
    if (rank.index() == 0) then = a, end = b;
  });
  sw::launch<sw::mesh<dp<3>>>([&](auto& rank) {
    sw::executor<host_step> ex(rank);
    sw::load(ex, scratch.path());
    CHECK(everything(ex) == then);
    train(ex, 4, 6);
    const auto got = everything(ex);
    double apart = 0;
    for (std::size_t k = 0; k < got.size(); ++k)
      for (std::size_t i = 0; i < got[k].size(); ++i)
        apart = std::fmax(apart, std::abs(static_cast<double>(got[k][i]) - static_cast<double>(end[k][i])));
    CHECK(apart < 1e-5);
    sw::save(ex, scratch.path(), {.step = 6});
    if (rank.index() == 0) moved = got;
  });
  sw::launch_cuda<sw::mesh<dp<D>>>([&](auto& rank) {
    sw::executor<device_step, std::remove_reference_t<decltype(rank)>> ex(rank);
    CHECK(sw::load(ex, scratch.path()).step == 6);
    CHECK(everything(ex) == moved);
  });
}

TEST_CASE("checkpoints: one GPU, the host, and back") { check_both_ways<1>(); }
TEST_CASE("checkpoints: two GPUs, the host, and back") { check_both_ways<2>(); }
TEST_CASE("checkpoints: flat parameters on one GPU, the host, and back") { check_both_ways<1, sw::flat_parameters>(); }
TEST_CASE("checkpoints: flat parameters on two GPUs, the host, and back") { check_both_ways<2, sw::flat_parameters>(); }

}  // namespace device_checkpoints
