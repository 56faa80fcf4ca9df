// SPDX-License-Identifier: Apache-2.0
// A language model trained on GPUs with fused kernels gives the losses and parameters of the host without fusion.
#define SHARDWISE_TEST_DEVICES 1
#include <equivalence.hpp>

#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/fuse/norm_adjoints.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

constexpr int steps = 10;

template <class T, int D, int N, class Sizes = sizes, class... Pass>
void check_fused() {
  if (!test::place::has(D * N)) return;
  using fused = step<T, D, N, tensor_parallel, Sizes, test::place, sw::pipeline<Pass...>>;
  using plain = step<T, 1, 1, tensor_parallel, Sizes, test::on_threads>;
  const history<T> want = train<plain, test::on_threads>(steps), got = train<fused>(steps);
  double losses = 0, parameters = 0;
  for (std::size_t s = 0; s < steps; ++s)
    losses = std::max(losses, static_cast<double>(std::abs(want.losses[0][s] - got.losses[0][s])));
  for (std::size_t i = 0; i < want.parameters.size(); ++i)
    for (std::size_t k = 0; k < want.parameters[i].size(); ++k)
      parameters = std::max(parameters, static_cast<double>(std::abs(want.parameters[i][k] - got.parameters[i][k])));
  MESSAGE("dp " << D << " x tp " << N << ": losses " << losses << ", parameters " << parameters);
  CHECK(losses <= loss_tolerance<T> * 10);
  CHECK(parameters <= parameter_tolerance<T>);
}

TEST_CASE("fused gpt on one gpu") {
  check_fused<double, 1, 1, sizes, sw::fuse_kernels>();
  check_fused<double, 1, 1, sizes, sw::fuse_pointwise>();
  check_fused<double, 1, 1, dropout_sizes, sw::fuse_kernels>();
  check_fused<float, 1, 1, sizes, sw::fuse_kernels>();
}
TEST_CASE("gpt of merged products and joined adjoints of norms on one gpu") {
  check_fused<double, 1, 1, sizes, sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>();
  check_fused<float, 1, 1, sizes, sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>();
}
TEST_CASE("fused gpt on two gpus") {
  check_fused<double, 2, 1, sizes, sw::fuse_kernels>();
  check_fused<double, 1, 2, sizes, sw::fuse_kernels>();
  check_fused<double, 1, 2, sizes, sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>();
}

}  // namespace
