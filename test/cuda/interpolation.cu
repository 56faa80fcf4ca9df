// SPDX-License-Identifier: Apache-2.0
// interpolate on a GPU, with its gradients and in both memory formats, is what it is on a host rank, and equal runs give equal bits.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/operations/interpolation/device.cuh>
#include <vector>

SHARDWISE_DEVICE_KERNELS_OF(shardwise::bf16, shardwise::custom::interpolate, shardwise::custom::interpolate_dx)

namespace device_interpolation {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

using options = sw::interpolate_options;
inline constexpr options nearest{}, bilinear{.mode = sw::interpolation::bilinear},
    corners{.mode = sw::interpolation::bilinear, .align_corners = true};

// Multiplied by itself, so that cotangents are no constants.
template <options O, int H, int W, bool Last>
struct sized {
  constexpr auto operator()(const auto& x) const {
    const auto stored = [&] {
      if constexpr (Last) return sw::contiguous<sw::memory_format::channels_last>(x * x);
      else return x * x;
    }();
    const auto y = sw::contiguous(sw::interpolate<H, W, O>(stored));
    return y * y;
  }
};
template <options O>
struct scaled {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::interpolate<sw::scale_factor(sw::scale_ratio(3, 2)), O>(x);
    return y * y;
  }
};
template <class F, class Element, class Backend>
using program = sw::gradient_step<F, mesh, sw::inputs<sw::input_tensor<Element, sw::shape<3, 4, 9, 7>>>, sw::wrt<0>,
                                  sw::pipeline<>, Backend>;

// The result and its gradient.
template <class Program, class Element, class Rank>
std::vector<double> run(Rank& rank) {
  sw::executor<Program, Rank> ex(rank);
  std::vector<Element> x(3 * 4 * 63);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<Element>(std::sin(1.3 * static_cast<double>(i)));
  ex.set_input(0, x);
  ex.run(sw::step_env{});
  std::vector<double> all;
  for (int k = 0; k < 2; ++k) {
    const auto block = ex.template output<Element>(k);
    for (std::size_t i = 0; i < block.size(); ++i) all.push_back(static_cast<double>(block[i]));
  }
  return all;
}

template <class F, class Element = double>
void check(double bound = 1e-12) {
  std::vector<double> on_host, on_device, again;
  sw::launch<mesh>([&](auto& rank) { on_host = run<program<F, Element, sw::host_backend>, Element>(rank); });
  sw::launch_cuda<mesh>([&](auto& rank) {
    on_device = run<program<F, Element, sw::cuda_backend>, Element>(rank);
    again = run<program<F, Element, sw::cuda_backend>, Element>(rank);
  });
  REQUIRE(on_host.size() == on_device.size());
  double worst = 0;
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    const double d = std::abs(on_host[i] - on_device[i]);
    worst = d <= worst ? worst : d;
  }
  CHECK(on_host.size() > 756);
  CHECK(worst < bound);
  CHECK(on_device == again);
}

TEST_CASE("interpolate on a GPU: larger and smaller, forward and back") {
  if (!test::place::has(1)) return;
  check<sized<nearest, 13, 4, false>>();
  check<sized<bilinear, 13, 4, false>>();
  check<sized<corners, 13, 4, false>>();
  check<sized<bilinear, 4, 15, true>>();
  check<sized<corners, 1, 7, true>>();
  check<scaled<bilinear>>();
}
TEST_CASE("interpolate on a GPU: float") {
  if (!test::place::has(1)) return;
  check<sized<bilinear, 13, 4, false>, float>(1e-4);
}

}  // namespace device_interpolation
