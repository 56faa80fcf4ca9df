// SPDX-License-Identifier: Apache-2.0
// rotary_embedding on a GPU, with its gradient, is what it is on a host rank.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/operations/rotary/device.cuh>
#include <vector>

namespace device_rotary {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

template <sw::rotary_options O>
struct turned {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::rotary_embedding<O>(x, 1000);
    return y * x;
  }
};
template <class F, class T, class Backend>
using program = sw::gradient_step<F, mesh, sw::inputs<sw::input_tensor<T, sw::shape<2, 37, 5, 14>>>, sw::wrt<0>,
                                  sw::pipeline<>, Backend>;

template <class Program, class T, class Rank>
std::vector<double> run(Rank& rank) {
  sw::executor<Program, Rank> ex(rank);
  std::vector<T> x(2 * 37 * 5 * 14);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(std::sin(1.3 * static_cast<double>(i)));
  ex.set_input(0, x);
  ex.run(sw::step_env{});
  std::vector<double> all;
  for (int k = 0; k < 2; ++k) {
    const auto block = ex.template output<T>(k);
    for (std::size_t i = 0; i < block.size(); ++i) all.push_back(static_cast<double>(block[i]));
  }
  return all;
}
template <sw::rotary_options O, class T>
void check(double bound) {
  std::vector<double> on_host, on_device;
  sw::launch<mesh>([&](auto& rank) { on_host = run<program<turned<O>, T, sw::host_backend>, T>(rank); });
  sw::launch_cuda<mesh>([&](auto& rank) { on_device = run<program<turned<O>, T, sw::cuda_backend>, T>(rank); });
  REQUIRE(on_host.size() == on_device.size());
  double worst = 0;
  for (std::size_t i = 0; i < on_host.size(); ++i) worst = std::fmax(worst, std::abs(on_host[i] - on_device[i]));
  CHECK(on_host.size() > 1000);
  CHECK(worst < bound);
}

TEST_CASE("rotary_embedding on a GPU: both forms and layouts") {
  if (!test::place::has(1)) return;
  check<sw::rotary_options{}, double>(1e-12);
  check<sw::rotary_options{.layout = sw::head_layout::bthd, .form = sw::rotary_form::interleaved, .base = 500000}, float>(
      1e-6);
}

}  // namespace device_rotary
