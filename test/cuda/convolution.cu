// SPDX-License-Identifier: Apache-2.0
// conv2d on a GPU, with the gradients of image and weight, is what it is on a host rank.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/operations/convolution/device.cuh>
#include <vector>

namespace device_convolution {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

template <int Stride, int Dilation, int Groups>
struct f {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto y =
        sw::conv2d<sw::convolution_options{.stride = Stride, .padding = 1, .dilation = Dilation, .groups = Groups}>(x, w);
    return y * y;
  }
};
template <class F, int Channels, class Backend>
using program = sw::gradient_step<
    F, mesh,
    sw::inputs<sw::input_tensor<double, sw::shape<3, 4, 9, 7>>, sw::input_tensor<double, sw::shape<6, Channels, 3, 2>>>,
    sw::wrt<0, 1>, sw::pipeline<>, Backend>;

// The result and both gradients.
template <class Program, int Channels, class Rank>
std::vector<double> run(Rank& rank) {
  sw::executor<Program, Rank> ex(rank);
  const auto some = [](std::size_t n, double salt) {
    std::vector<double> v(n);
    for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(1.3 * static_cast<double>(i) + salt);
    return v;
  };
  ex.set_input(0, some(3 * 4 * 63, 0));
  ex.set_input(1, some(static_cast<std::size_t>(36 * Channels), 1));
  ex.run(sw::step_env{});
  std::vector<double> all;
  for (int k = 0; k < 3; ++k) {
    const auto block = ex.template output<double>(k);
    for (std::size_t i = 0; i < block.size(); ++i) all.push_back(block[i]);
  }
  return all;
}

template <class F, int Channels>
void check() {
  std::vector<double> on_host, on_device;
  sw::launch<mesh>([&](auto& rank) { on_host = run<program<F, Channels, sw::host_backend>, Channels>(rank); });
  sw::launch_cuda<mesh>([&](auto& rank) { on_device = run<program<F, Channels, sw::cuda_backend>, Channels>(rank); });
  REQUIRE(on_host.size() == on_device.size());
  double worst = 0;
  for (std::size_t i = 0; i < on_host.size(); ++i) worst = std::fmax(worst, std::abs(on_host[i] - on_device[i]));
  CHECK(on_host.size() > 1000);
  CHECK(worst < 1e-11);
}

TEST_CASE("conv2d on a GPU: strides, dilations and groups, forward and both gradients") {
  if (!test::place::has(1)) return;
  check<f<1, 1, 1>, 4>();
  check<f<2, 1, 1>, 4>();
  check<f<1, 2, 2>, 2>();
}

}  // namespace device_convolution
