// SPDX-License-Identifier: Apache-2.0
// Scratch of a user's own operation on a GPU: the kernel is given what the record asks for.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <custom_scratch.hpp>
#include <figures.hpp>
#include <place.hpp>
#include <shardwise/module/function.hpp>
#include <vector>

namespace device_scratch_test {

namespace sw = shardwise;

// One thread for all rows: they share one row of sums.
template <class T>
__global__ void balance_rows(const T* x, T* out, T* sums, std::int64_t rows, std::int64_t n, bool from_end) {
  for (std::int64_t r = 0; r < rows; ++r) balances::one_row(x + r * n, out + r * n, sums, n, from_end);
}

struct one : sw::axis<1> {};
struct twice {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::call<balances::balance>(x);
    return sw::call<balances::balance>(y * y);
  }
};

}  // namespace device_scratch_test

template <>
struct shardwise::device_kernel<balances::balance> {
  template <class T>
  static void run(const kernel_arguments<T>& k, cudaStream_t stream) {
    const std::int64_t n = k.extent(k.rank() - 1), rows = n > 0 ? k.size() / n : 0;
    if (rows > 0)
      device_scratch_test::balance_rows<<<1, 1, 0, stream>>>(k.in(0), k.out(), k.scratch(), rows, n, k.attribute(0) != 0);
  }
};
SHARDWISE_DEVICE_KERNELS(balances::balance)

namespace device_scratch_test {

template <class Backend>
using step =
    sw::function_step<twice, sw::mesh<one>, sw::inputs<sw::input_tensor<double, sw::shape<5, 37>>>, sw::pipeline<>, Backend>;
static_assert(step<sw::cuda_backend>::memory::value.workspace >= 37 * 8);

TEST_CASE("own operations: scratch on a GPU") {
  if (!test::place::has(1)) return;
  const std::vector<double> x = figures::some(5 * 37, 3);
  std::vector<double> on_host, on_device(5 * 37);
  sw::launch<sw::mesh<one>>([&](auto& rank) {
    sw::executor<step<sw::host_backend>, std::remove_reference_t<decltype(rank)>> run(rank);
    run.set_input(0, x);
    run.run({});
    on_host.assign(run.output().begin(), run.output().end());
  });
  sw::launch_cuda<sw::mesh<one>>([&](auto& rank) {
    sw::executor<step<sw::cuda_backend>, std::remove_reference_t<decltype(rank)>> run(rank);
    run.set_input(0, x);
    run.run({});
    const auto out = run.output();
    on_device.assign(out.begin(), out.end());
  });
  CHECK(figures::apart(on_host, on_device) < 1e-11);
}

}  // namespace device_scratch_test
