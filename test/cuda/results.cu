// SPDX-License-Identifier: Apache-2.0
// Operations with several results on a GPU: max and min along a dim, with positions and gradients, and a kernel written by hand, of
// which one result is wanted by nobody, are what they are on a host rank.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <cmath>
#include <custom_results.hpp>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/operations/extreme/device.cuh>
#include <vector>

namespace device_results {

namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

// A thread for each row; null where nobody wants the result.
template <class T>
__global__ void describe_rows(const T* x, T* e, T* sums, std::int32_t* where, std::int64_t rows, std::int64_t n) {
  const std::int64_t r = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (r >= rows) return;
  T sum = 0;
  std::int64_t largest = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const T v = x[r * n + i];
    if (e) e[r * n + i] = sw::cuda::math<T>::exp(v);
    sum += v;
    if (x[r * n + largest] < v) largest = i;
  }
  if (sums) sums[r] = sum;
  if (where) where[r] = static_cast<std::int32_t>(largest);
}
template <class T>
void launch_rows(const sw::kernel_arguments<T>& k, cudaStream_t stream) {
  const std::int64_t n = k.extent(0, k.rank(0) - 1), rows = n > 0 ? k.size(0) / n : 0;
  if (rows > 0)
    describe_rows<<<static_cast<unsigned>((rows + 127) / 128), 128, 0, stream>>>(k.in(0), k.out(0), k.out(1), k.index_out(2),
                                                                                 rows, n);
}

template <int Dim>
struct largest {
  constexpr auto operator()(const auto& x) const {
    const auto [values, indices] = sw::max<Dim>(x);
    const auto [least, where] = sw::min<Dim>(x);
    return std::tuple{sw::sum(values * values + least * sw::tanh(values)), indices, where, values};
  }
};
struct described_rows {
  constexpr auto operator()(const auto& x) const {
    const auto [e, sums, where] = sw::call<described::lines>(x);
    return std::tuple{sw::sum(sw::sum<1>(e) * sums), where};
  }
};
struct sums_alone {
  constexpr auto operator()(const auto& x) const {
    const auto [e, sums, where] = sw::call<described::lines>(x);
    return std::tuple{sw::sum(sums * sums)};
  }
};

template <class F, class Backend>
using program =
    sw::gradient_step<F, mesh, sw::inputs<sw::input_tensor<double, sw::shape<70, 33>>>, sw::wrt<0>, sw::pipeline<>, Backend>;

// All outputs, the gradient last.
template <class Program, class Rank>
std::vector<double> run(Rank& rank) {
  sw::executor<Program, Rank> ex(rank);
  std::vector<double> x(70 * 33);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(1.3 * static_cast<double>(i % 401));  // some are equal
  ex.set_input(0, x);
  ex.run(sw::step_env{});
  std::vector<double> all;
  const auto add = [&](const auto& block) {
    for (std::size_t i = 0; i < block.size(); ++i) all.push_back(static_cast<double>(block[i]));
  };
  constexpr int outputs = Program::program.output_count;
  [&]<std::size_t... K>(std::index_sequence<K...>) {
    (add(ex.template output<sw::element_t<Program::program.spec_of(Program::program.outputs[K]).type>>(static_cast<int>(K))),
     ...);
  }(std::make_index_sequence<static_cast<std::size_t>(outputs)>{});
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
  CHECK(on_host.size() > 70 * 33);
  CHECK(worst < 1e-11);
}

TEST_CASE("several results on a GPU: extremes along both dims, and a kernel written by hand, some results unread") {
  if (!test::place::has(1)) return;
  check<largest<0>>();
  check<largest<1>>();
  check<described_rows>();
  check<sums_alone>();
}

}  // namespace device_results

template <>
struct shardwise::device_kernel<described::lines> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    device_results::launch_rows(k, stream);
  }
};
SHARDWISE_DEVICE_KERNELS(described::lines)
