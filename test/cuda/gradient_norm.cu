// SPDX-License-Identifier: Apache-2.0
// report_norm on GPUs: the norm of plain loops, of each run behind the one before, with and without clipping, loss scales and fused updates.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <gradient_norm.hpp>

#include <shardwise/pass/optimizer/list_optimizer.hpp>

namespace {

namespace sw = shardwise;
using namespace gradient_norms;
using adam = sw::clip_norm<sw::adamw<>>;

template <class T, class Pipeline, int N, class... E>
void check_clipped(double tolerance) {
  check_norm<step<T, N, sw::report_norm<adam>, Pipeline, E...>, step<T, N, adam, Pipeline, E...>>(tolerance, 0.1);
}

}  // namespace

TEST_CASE("the norm of all gradients on a GPU") {
  if (!test::on_devices::has(1)) return;
  check_clipped<double, sw::pipeline<sw::fused_optimizer>, 1, sw::data_parallel<dp<1>>>(1e-12);
  check_clipped<float, sw::pipeline<>, 1, sw::data_parallel<dp<1>>, sw::mixed<sw::f16>, sw::dynamic_loss_scale<1024>>(5e-3);
  check_norm<step<double, 1, sw::report_norm<sw::sgd<true>>, sw::pipeline<>, sw::data_parallel<dp<1>>>,
             step<double, 1, sw::sgd<true>, sw::pipeline<>, sw::data_parallel<dp<1>>>>(1e-12, 1);
}
TEST_CASE("the norm of all gradients on 2 GPUs") {
  if (!test::on_devices::has(2)) return;
  check_clipped<double, sw::pipeline<>, 2, sw::fully_shard<dp<2>>>(1e-12);
}
