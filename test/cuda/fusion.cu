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
// Elements of two bytes: products in batches, sums beside them and joined adjoints of norms behind the casts of a mixed step.
template <class Plan>
struct with_bf16;
template <class... E>
struct with_bf16<sw::plan<E...>> {
  using type = sw::plan<E..., sw::mixed<sw::bf16>>;
};
template <class Dp, class Tp>
struct tensor_mixed : with_bf16<typename tensor_parallel<Dp, Tp>::type> {};

TEST_CASE("mixed gpt of merged products and joined adjoints of norms on one gpu") {
  if (!test::place::has(1)) return;
  using plain = step<float, 1, 1, tensor_mixed, sizes, test::on_threads>;
  using merged = step<float, 1, 1, tensor_mixed, sizes, test::place,
                      sw::pipeline<sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>>;
  const history<float> want = train<plain, test::on_threads>(steps), got = train<merged>(steps);
  double losses = 0;
  for (std::size_t s = 0; s < steps; ++s)
    losses = std::max(losses, static_cast<double>(std::abs(want.losses[0][s] - got.losses[0][s])));
  MESSAGE("mixed: losses " << losses);
  CHECK(losses <= 0.02);  // of about 5.6, as between plans in test/dist/module/mixed_language_model.cpp
}
TEST_CASE("fused gpt on two gpus") {
  check_fused<double, 2, 1, sizes, sw::fuse_kernels>();
  check_fused<double, 1, 2, sizes, sw::fuse_kernels>();
  check_fused<double, 1, 2, sizes, sw::merge_products, sw::fuse_kernels, sw::join_norm_adjoints>();
}

}  // namespace
