// SPDX-License-Identifier: Apache-2.0
// A language model trained with fused kernels has the losses and parameters that it has without, on 1, 2 and 4 ranks.
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/analysis/kernels.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <gpt.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

constexpr int steps = 3;

template <class T, int D, int N, class Sizes, template <class, class> class Plan, class Pass>
double worst_difference() {
  using plain = step<T, D, N, Plan, Sizes>;
  using fused = step<T, D, N, Plan, Sizes, test::place, sw::pipeline<Pass>>;
  static_assert(sw::passes::kernel_calls(fused::program).kernels < sw::passes::kernel_calls(plain::program).kernels);
  static_assert(fused::traffic.order_hash == plain::traffic.order_hash);
  const history<T> want = train<plain>(steps), got = train<fused>(steps, sw::executor_checks::poison);
  double most = 0;
  const auto compare = [&most](const std::vector<T>& a, const std::vector<T>& b) {
    REQUIRE(a.size() == b.size());
    for (std::size_t i = 0; i < a.size(); ++i)
      most = std::max(
          most, std::abs(static_cast<double>(a[i]) - static_cast<double>(b[i])) / (1 + std::abs(static_cast<double>(a[i]))));
  };
  for (std::size_t r = 0; r < want.losses.size(); ++r) compare(want.losses[r], got.losses[r]);
  for (std::size_t p = 0; p < want.parameters.size(); ++p) compare(want.parameters[p], got.parameters[p]);
  CHECK(want.losses[0].front() > want.losses[0].back());
  return most;
}

template <class T, int D, int N, class Pass = sw::fuse_kernels>
double worst() {
  return worst_difference<T, D, N, sizes, tensor_parallel, Pass>();
}

TEST_CASE("fusion: training is the same on one rank") {
  CHECK(worst<double, 1, 1>() < 1e-12);
  CHECK(worst<double, 1, 1, sw::fuse_pointwise>() < 1e-12);
}
TEST_CASE("fusion: training is the same on two ranks") {
  CHECK(worst<double, 2, 1>() < 1e-12);
  CHECK(worst<double, 1, 2>() < 1e-12);
}
TEST_CASE("fusion: training is the same on four ranks") {
  CHECK(worst<double, 2, 2>() < 1e-12);
  CHECK((worst_difference<double, 1, 4, sizes, sequence_parallel, sw::fuse_kernels>()) < 1e-12);
}
TEST_CASE("fusion: training with masks is the same, and in float nearly") {
  CHECK((worst_difference<double, 1, 2, dropout_sizes, tensor_parallel, sw::fuse_kernels>()) < 1e-12);
  CHECK(worst<float, 1, 2>() < 1e-4);
}

}  // namespace
