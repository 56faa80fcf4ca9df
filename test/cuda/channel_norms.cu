// SPDX-License-Identifier: Apache-2.0
// batch_norm and group_norm on a GPU, with their gradients and in both memory formats, are what they are on a host rank; of two-byte
// elements as near as those are.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/operations/channel_norm/device.cuh>
#include <type_traits>
#include <vector>

SHARDWISE_DEVICE_KERNELS_OF(shardwise::bf16, shardwise::custom::channel_moments, shardwise::custom::channel_moments_about,
                            shardwise::custom::channel_norm, shardwise::custom::channel_norm_sums,
                            shardwise::custom::channel_norm_dx)

namespace device_channel_norms {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

constexpr int N = 3, C = 40, H = 9, W = 7;

// What a program states whose kernels are compiled for elements of two bytes, too; its own are float then.
template <bool Low>
struct elements {
  using value = double;
};
template <>
struct elements<true> {
  using value = float;
  using low_element = sw::bf16;
};

// Squared and multiplied by another function of x, so that cotangents are no constants. Low: computed on elements of two bytes.
template <int Groups, bool Last, bool Low>
struct f : elements<Low> {
  constexpr auto operator()(const auto& given, const auto& mean, const auto& var, const auto& weight,
                            const auto& bias) const {
    const auto x = [&] {
      if constexpr (Low) return sw::cast<sw::bf16>(given);
      else return given;
    }();
    const auto stored = [&] {
      if constexpr (Last) return sw::contiguous<sw::memory_format::channels_last>(x);
      else return x;
    }();
    const auto w = [&] {
      if constexpr (Low) return sw::cast<sw::bf16>(weight);
      else return weight;
    }();
    const auto b = [&] {
      if constexpr (Low) return sw::cast<sw::bf16>(bias);
      else return bias;
    }();
    const auto y = [&] {
      if constexpr (Groups == 0) return sw::batch_norm<sw::batch_norm_options{.training = true}>(stored, mean, var, w, b);
      else return sw::group_norm<Groups>(stored, w, b);
    }();
    return sw::cast<typename elements<Low>::value>(sw::contiguous(y)) * sw::sin(given);
  }
};
// Cut in height (by one rank, which holds it whole) an image's statistics are sums of its parts.
template <class F>
struct in_parts : F {};
template <class F>
inline constexpr bool is_in_parts = false;
template <class F>
inline constexpr bool is_in_parts<in_parts<F>> = true;
template <class F, class Placement = std::conditional_t<is_in_parts<F>, sw::reduced, sw::replicate>>
using channels = sw::input_tensor<typename F::value, sw::shape<C>, sw::on<one, Placement>>;
template <class F>
using images = sw::input_tensor<typename F::value, sw::shape<N, C, H, W>,
                                sw::on<one, std::conditional_t<is_in_parts<F>, sw::shard<2>, sw::replicate>>>;
template <class F, class Backend>
using program = sw::gradient_step<F, mesh, sw::inputs<images<F>, channels<F>, channels<F>, channels<F>, channels<F>>,
                                  sw::wrt<0, 3, 4>, sw::pipeline<>, Backend>;

template <class T>
std::vector<T> numbers(std::size_t n, double salt) {
  std::vector<T> x(n);
  for (std::size_t i = 0; i < n; ++i) x[i] = static_cast<T>(3 + std::sin(1.3 * static_cast<double>(i) + salt));
  return x;
}

// The result, its gradients, and the running statistics that it leaves.
template <class F, class Program, class Rank>
std::vector<double> run(Rank& rank) {
  using T = typename F::value;
  sw::executor<Program, Rank> ex(rank);
  ex.set_input(0, numbers<T>(N * C * H * W, 0));
  for (int k = 1; k < 5; ++k) ex.set_input(k, numbers<T>(C, k));
  ex.run(sw::step_env{});
  std::vector<double> all;
  for (int k = 0; k < 4; ++k) {
    const auto block = ex.template output<T>(k);
    for (std::size_t i = 0; i < block.size(); ++i) all.push_back(block[i]);
  }
  return all;
}

template <class F, class Exact = F>
void check(double tolerance) {
  std::vector<double> on_host, on_device, again;
  sw::launch<mesh>([&](auto& rank) { on_host = run<Exact, program<Exact, sw::host_backend>>(rank); });
  sw::launch_cuda<mesh>([&](auto& rank) {
    on_device = run<F, program<F, sw::cuda_backend>>(rank);
    again = run<F, program<F, sw::cuda_backend>>(rank);
  });
  REQUIRE(on_host.size() == 2 * N * C * H * W + 2 * C);
  REQUIRE(on_host.size() == on_device.size());
  double worst = 0;
  for (std::size_t i = 0; i < on_host.size(); ++i) {
    const double d = std::abs(on_host[i] - on_device[i]) / (1 + std::abs(on_host[i]));
    worst = d <= worst ? worst : d;
  }
  CHECK(worst < tolerance);
  CHECK(on_device == again);
}

TEST_CASE("norms over channels on a GPU: the batch's and each image's, forward and back, in both formats") {
  if (!test::place::has(1)) return;
  check<f<0, false, false>>(1e-12);
  check<f<0, true, false>>(1e-12);
  check<f<5, false, false>>(1e-12);
  check<f<5, true, false>>(1e-12);
  check<f<1, false, false>>(1e-12);
}
TEST_CASE("norms over channels on a GPU: of images cut in height") {
  if (!test::place::has(1)) return;
  check<in_parts<f<0, false, false>>, f<0, false, false>>(1e-12);
  check<in_parts<f<0, true, false>>, f<0, true, false>>(1e-12);
  check<in_parts<f<5, false, false>>, f<5, false, false>>(1e-12);
  check<in_parts<f<0, true, true>>, f<0, true, false>>(0.05);
}
TEST_CASE("norms over channels on a GPU: of two-byte elements") {
  if (!test::place::has(1)) return;
  check<f<0, false, true>, f<0, false, false>>(0.05);
  check<f<5, true, true>, f<5, true, false>>(0.05);
}

}  // namespace device_channel_norms
