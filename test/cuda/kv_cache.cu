// SPDX-License-Identifier: Apache-2.0
// Decoding with a key/value cache on a GPU, in steps of different lengths, is what it is on a host rank; a position beyond the cache is
// refused when the rank next waits.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <place.hpp>
#include <shardwise/module/kv_cache.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/operations/cache/device.cuh>
#include <stdexcept>
#include <string>
#include <vector>

namespace device_kv_cache {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;
constexpr int B = 3, H = 6, KH = 2, L = 70, V = 13;

template <int D, int Window>
struct net_of {
  static constexpr sw::attention_options how{.layout = sw::head_layout::bthd, .enable_gqa = true, .window = Window};
  template <class Bound = sw::unbound>
  struct net : sw::module<net<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::embedding_table<V, H * D>, tokens), (sw::embedding_table<L, H * D>, positions),
                      (sw::linear<H * D, KH * D>, wk), (sw::linear<H * D, KH * D>, wv),
                      (sw::kv_cache<B, L, KH, D, how>, cache), (sw::linear<H * D, V>, head));
    constexpr auto forward(const auto& ids, const auto& position) const {
      constexpr sw::rotary_options turned{.layout = sw::head_layout::bthd};
      const auto x = tokens(ids) + positions(sw::position_ids(ids, position));
      const auto q = sw::rotary_embedding<turned>(sw::unflatten<-1, H, D>(x), position);
      const auto k = sw::rotary_embedding<turned>(sw::unflatten<-1, KH, D>(wk(x)), position);
      return head(sw::flatten<2, 3>(cache(q, k, sw::unflatten<-1, KH, D>(wv(x)), position)));
    }
  };
  template <class B2>
  using model = net<B2>;
};
struct task {
  using inputs =
      sw::inputs<sw::input_tensor<std::int32_t, sw::shape<B, sw::dyn<L>>>, sw::input_tensor<std::int32_t, sw::shape<B>>>;
  constexpr auto operator()(const auto& model, const auto& ids, const auto& position) const { return model(ids, position); }
};
template <int D, int Window, class T, class Backend>
using program = sw::forward_step<net_of<D, Window>::template model, task, sw::plan<>, mesh, sw::pipeline<>, T, Backend>;

template <class Program, class T, class Rank>
std::vector<double> run(Rank& rank) {
  sw::executor<Program, Rank> step(rank);
  step.initialise(1);
  std::vector<double> all;
  std::int32_t at = 0;
  for (const int n : {40, 1, 1, 7, 1, 20}) {
    step.resize(n);
    std::vector<std::int32_t> ids;
    for (int i = 0; i < B * n; ++i) ids.push_back((5 * i + at) % V);
    step.set_input(0, ids);
    step.set_input(1, std::vector<std::int32_t>{at, 0, at / 2});  // one that begins anew each time, one that goes back
    step.run(sw::step_env{});
    const auto block = step.template output<T>(0);
    for (std::size_t i = 0; i < block.size(); ++i) all.push_back(static_cast<double>(block[i]));
    at += n;
  }
  return all;
}
template <int D, int Window, class T>
void check(double bound) {
  std::vector<double> on_host, on_device;
  sw::launch<mesh>([&](auto& rank) { on_host = run<program<D, Window, T, sw::host_backend>, T>(rank); });
  sw::launch_cuda<mesh>([&](auto& rank) { on_device = run<program<D, Window, T, sw::cuda_backend>, T>(rank); });
  REQUIRE(on_host.size() == on_device.size());
  double worst = 0;
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    const double d = std::abs(on_host[i] - on_device[i]);
    worst = d <= worst ? worst : d;
  }
  CHECK(on_host.size() == B * L * V);
  CHECK(worst < bound);
}

TEST_CASE("kv_cache on a GPU: prompts and tokens, heads of several sizes, with and without a window") {
  if (!test::place::has(1)) return;
  check<4, 0, double>(1e-11);
  check<40, 0, double>(1e-11);
  check<6, 9, float>(1e-4);
  check<96, 0, float>(1e-4);
  check<130, 5, double>(1e-11);
}

TEST_CASE("kv_cache on a GPU: a position that the cache does not have is refused") {
  if (!test::place::has(1)) return;
  sw::launch_cuda<mesh>([&](auto& rank) {
    sw::executor<program<4, 0, float, sw::cuda_backend>, std::remove_reference_t<decltype(rank)>> step(rank);
    step.initialise(1);
    step.resize(1);
    step.set_input(0, std::vector<std::int32_t>(B, 1));
    step.set_input(1, std::vector<std::int32_t>{0, L, 0});
    std::string said;
    try {
      step.run(sw::step_env{});
      (void)step.template output<float>(0);
    } catch (const std::exception& e) {
      said = e.what();
    }
    CHECK(said.find("index 70 is outside 0..69") != std::string::npos);
  });
}

}  // namespace device_kv_cache
