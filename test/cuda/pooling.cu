// SPDX-License-Identifier: Apache-2.0
// Pooling on a GPU, with its gradients, is what it is on a host rank.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/operations/pooling/device.cuh>
#include <vector>

namespace device_pooling {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

template <bool Largest, int Kernel, int Stride, int Padding, bool Up = false, int Dilation = 1>
struct f {
  static constexpr sw::pool_options options{.kernel = Kernel,
                                            .stride = Stride,
                                            .padding = Padding,
                                            .count_include_pad = Kernel != 3,
                                            .ceil_mode = Up,
                                            .dilation = Dilation};
  constexpr auto operator()(const auto& x) const {
    if constexpr (Largest) return sw::max_pool2d<options>(x) * sw::max_pool2d<options>(x);
    else return sw::avg_pool2d<options>(x) * sw::avg_pool2d<options>(x);
  }
};
template <class F, class Backend>
using program = sw::gradient_step<F, mesh, sw::inputs<sw::input_tensor<double, sw::shape<3, 4, 9, 7>>>, sw::wrt<0>,
                                  sw::pipeline<>, Backend>;

// The result and its gradient.
template <class Program, class Rank>
std::vector<double> run(Rank& rank) {
  sw::executor<Program, Rank> ex(rank);
  std::vector<double> x(3 * 4 * 63);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.3 * static_cast<double>(i));
  ex.set_input(0, x);
  ex.run(sw::step_env{});
  std::vector<double> all;
  for (int k = 0; k < 2; ++k) {
    const auto block = ex.template output<double>(k);
    for (std::size_t i = 0; i < block.size(); ++i) all.push_back(block[i]);
  }
  return all;
}

template <class F>
void check() {
  std::vector<double> on_host, on_device;
  sw::launch<mesh>([&](auto& rank) { on_host = run<program<F, sw::host_backend>>(rank); });
  sw::launch_cuda<mesh>([&](auto& rank) { on_device = run<program<F, sw::cuda_backend>>(rank); });
  REQUIRE(on_host.size() == on_device.size());
  double worst = 0;
  for (std::size_t i = 0; i < on_host.size(); ++i) worst = std::fmax(worst, std::abs(on_host[i] - on_device[i]));
  CHECK(on_host.size() > 756);
  CHECK(worst < 1e-12);
}

TEST_CASE("pooling on a GPU: the largest and the mean, forward and back") {
  if (!test::place::has(1)) return;
  check<f<true, 2, 2, 0>>();
  check<f<true, 3, 1, 1>>();
  check<f<false, 2, 2, 1>>();
  check<f<false, 3, 2, 1>>();
  check<f<true, 3, 2, 1, true, 2>>();
  check<f<false, 2, 2, 1, true>>();
}

}  // namespace device_pooling
