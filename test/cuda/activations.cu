// SPDX-License-Identifier: Apache-2.0
// Further elementwise functions, losses and running sums on a GPU, with their gradients, are what they are on a host rank.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/more_functions.cuh>
#include <vector>

namespace device_activations {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

struct smooth {
  constexpr auto operator()(const auto& x, const auto& y) const {
    return sw::erf(x) + sw::log1p(y * y) + sw::expm1(x) + sw::softplus<sw::softplus_options{.beta = 2}>(y) +
           sw::log_sigmoid(x) + sw::leaky_relu(x) + sw::elu(y, 0.5) + sw::swiglu(x, y);
  }
};
struct rounded {
  constexpr auto operator()(const auto& x, const auto& y) const {
    return x * y + x * (sw::floor(y) + sw::ceil(x) + sw::round(x + y) +
                        sw::cast<double>(sw::logical_and(sw::isfinite(x), sw::gt(y, 0))));
  }
};
struct losses {
  constexpr auto operator()(const auto& x, const auto& y) const {
    using none = std::integral_constant<sw::loss_reduction, sw::loss_reduction::none>;
    const auto p = sw::sigmoid(y);
    return sw::binary_cross_entropy_with_logits<none::value>(x, p) + sw::kl_div<none::value>(x, p) +
           sw::smooth_l1_loss<none::value>(x, y, 0.5);
  }
};
struct sums {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::cumsum<0>(x * y) + sw::cumsum<-1>(x); }
};
template <class F, class Backend>
using program =
    sw::gradient_step<F, mesh,
                      sw::inputs<sw::input_tensor<double, sw::shape<37, 1, 6>>, sw::input_tensor<double, sw::shape<3, 1>>>,
                      sw::wrt<0, 1>, sw::pipeline<>, Backend>;

template <class Program, class Rank>
std::vector<double> run(Rank& rank) {
  sw::executor<Program, Rank> ex(rank);
  std::vector<double> x(37 * 6), y(3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = 3 * std::sin(1.3 * static_cast<double>(i));
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = std::cos(1.7 * static_cast<double>(i));
  ex.set_input(0, x);
  ex.set_input(1, y);
  ex.run(sw::step_env{});
  std::vector<double> all;
  for (int k = 0; k < 3; ++k) {
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
  CHECK(on_host.size() > 200);
  CHECK(worst < 1e-12);
}

TEST_CASE("further elementwise functions on a GPU") {
  if (!test::place::has(1)) return;
  check<smooth>();
  check<rounded>();
  check<losses>();
  check<sums>();
}

}  // namespace device_activations
