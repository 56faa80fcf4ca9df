// SPDX-License-Identifier: Apache-2.0
// Users' own operations on GPUs: a train step with one gives the losses of host ranks, a kernel written by hand runs, and one that no
// source has compiled is named when the executor is made.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <08_own_operation/operation.hpp>
#include <cmath>
#include <custom_operations.hpp>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <vector>

namespace device_custom {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct one : sw::axis<1> {};
template <class Backend>
using step = sw::train_step<gated::block, gated::task<double, dp>, gated::plan<dp, tp>, sw::mesh<dp, tp>, sw::adam<>,
                            sw::pipeline<>, double, Backend>;

TEST_CASE("own operations: a train step on GPUs is the one on host ranks") {
  if (!test::place::has(4)) return;
  double on_host = 0, on_devices = 1;
  sw::launch<sw::mesh<dp, tp>>([&](auto& rank) {
    const double loss = gated::train<step<sw::host_backend>>(rank, 20);
    if (rank.index() == 0) on_host = loss;
  });
  sw::launch_cuda<sw::mesh<dp, tp>>([&](auto& rank) {
    const double loss = gated::train<step<sw::cuda_backend>>(rank, 20);
    if (rank.index() == 0) on_devices = loss;
  });
  CHECK(std::abs(on_host - on_devices) < 1e-11);
}

// A thread for each row.
template <class T>
__global__ void sum_rows(const T* x, T* out, std::int64_t rows, std::int64_t n, bool from_the_end) {
  const std::int64_t r = blockIdx.x * std::int64_t{blockDim.x} + threadIdx.x;
  if (r >= rows) return;
  T sum = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    const std::int64_t at = r * n + (from_the_end ? n - 1 - i : i);
    out[at] = sum += x[at];
  }
}
template <class T>
void launch_sums(const sw::kernel_arguments<T>& k, cudaStream_t stream) {
  const std::int64_t n = k.extent(k.rank() - 1), rows = n > 0 ? k.size() / n : 0;
  if (rows > 0)
    sum_rows<<<static_cast<unsigned>((rows + 127) / 128), 128, 0, stream>>>(k.in(0), k.out(), rows, n, k.attribute(0) != 0);
}

struct running {
  constexpr auto operator()(const auto& x) const { return sw::call<sums::running>(sw::transpose<0, 1>(x)); }
};
struct not_compiled {
  constexpr auto operator()(const auto& x) const { return sw::call<sums::wrong_adjoint>(x); }
};
template <class F>
using program = sw::gradient_step<F, sw::mesh<one>, sw::inputs<sw::input_tensor<double, sw::shape<3, 5>>>, sw::wrt<0>,
                                  sw::pipeline<>, sw::cuda_backend>;
template <class F>
using function = sw::function_step<F, sw::mesh<one>, sw::inputs<sw::input_tensor<double, sw::shape<3, 5>>>, sw::pipeline<>,
                                   sw::cuda_backend>;

TEST_CASE("own operations: a kernel written by hand, and its adjoint, run on a GPU") {
  if (!test::place::has(1)) return;
  sw::launch_cuda<sw::mesh<one>>([](auto& rank) {
    sw::executor<program<running>, std::remove_reference_t<decltype(rank)>> run(rank);
    std::vector<double> x(15), want(15);
    for (int i = 0; i < 15; ++i) x[static_cast<std::size_t>(i)] = i * i % 7 - 2;
    run.set_input(0, x);
    run.run(sw::step_env{});
    const auto y = run.template output<double>(0), dx = run.template output<double>(1);
    bool right = y.size() == 15 && dx.size() == 15;
    for (std::size_t c = 0; right && c < 5; ++c) {
      double sum = 0;
      for (std::size_t r = 0; r < 3; ++r) {
        sum += x[r * 5 + c];
        right = right && y[c * 3 + r] == sum && dx[r * 5 + c] == static_cast<double>(3 - r);
      }
    }
    if (!right) throw std::runtime_error("running sums on a GPU are not those of the host");
  });
}

TEST_CASE("own operations: one that no source has compiled for GPUs is named") {
  if (!test::place::has(1)) return;
  CHECK_THROWS_WITH(sw::launch_cuda<sw::mesh<one>>([](auto& rank) {
                      sw::executor<function<not_compiled>, std::remove_reference_t<decltype(rank)>> run(rank);
                    }),
                    doctest::Contains("wrong_adjoint, of which no device kernel for its element type"));
}

}  // namespace device_custom

template <>
struct shardwise::device_kernel<sums::running> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    device_custom::launch_sums(k, stream);
  }
};

SHARDWISE_DEVICE_KERNELS(gated::swiglu, gated::swiglu_gate, gated::swiglu_up)
SHARDWISE_DEVICE_KERNELS(sums::running)
