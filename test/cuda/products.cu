// SPDX-License-Identifier: Apache-2.0
// Which algorithm computes a product: measured ones give the numbers of the deterministic one; what one executor has measured the
// next one knows, so that equal programs give equal bits; files that are kept and files that are damaged; TF32 where it is asked for.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include <models.hpp>
#include <place.hpp>
#include <shardwise/pass/fuse/fuse.hpp>

namespace device_products {

namespace sw = shardwise;
using namespace test;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;
constexpr int layers = 3, width = 384, rows = 512;  // larger than what flat products take (is_worth_flat)
template <int N, class Backend, class... Passes>
using step =
    sw::train_step<relu_stack<layers, width>::template model, sum_task<float, rows, width, sw::on<dp<N>, sw::shard<0>>>,
                   sw::plan<sw::data_parallel<dp<N>>>, mesh<N>, sw::adam<>, sw::pipeline<Passes...>, float, Backend>;

struct folder {
  std::string path = "/tmp/shardwise_device_products_" + std::to_string(getpid());
  ~folder() { CHECK(std::system(("rm -rf " + path).c_str()) == 0); }
};

// Losses of four steps on rank 0, and what its start reports.
template <class Step>
std::vector<float> losses(const sw::product_options& options, sw::product_report& report) {
  std::vector<float> all;
  sw::launch_cuda<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(
        rank, sw::device_options{sw::device_execution::graph, sw::executor_checks::none, options});
    std::vector<float> x(rows * width);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i * 37 % 101) / 101 - 0.3F;
    ex.initialise(3);
    ex.set_input(0, x);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 4; ++env.step) {
      ex.run(env);
      const float loss = ex.loss();
      if (rank.index() == 0) all.push_back(loss);
    }
    if (rank.index() == 0) report = ex.products();
  });
  return all;
}

double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = a.size() == b.size() ? 0 : HUGE_VAL;
  for (std::size_t i = 0; i < a.size() && i < b.size(); ++i)
    most = std::max(most, static_cast<double>(std::fabs(a[i] - b[i])) / std::fabs(static_cast<double>(b[i])));
  return most;
}

constexpr sw::product_choice measured = sw::product_choice::measured, deterministic = sw::product_choice::deterministic;

// The choice that depends on nothing, and the same program measured, twice. Small products that an expression follows are kernels
// of the library's own: of these a program may have no other.
template <class Step, bool Some = true>
void check() {
  if (!place::has(Step::mesh_type::size)) return;
  const folder at;
  sw::product_report none, first, second;
  const auto expected = losses<Step>({deterministic, 10, true, at.path}, none);
  CHECK(none.measured == 0);
  CHECK(none.remembered == 0);
  CHECK((!Some || none.shapes > 0));
  CHECK(losses<Step>({deterministic, 10, true, at.path}, none) == expected);
  const auto chosen = losses<Step>({measured, 10, true, at.path}, first);
  CHECK(first.measured + first.remembered == first.shapes);
  // before the first update; behind it a gradient near zero, which another order of adding gives another sign, moves a parameter of Adam's
  // by the learning rate the other way
  CHECK(difference({chosen[0]}, {expected[0]}) < 1e-5);
  for (const float loss : chosen) CHECK(std::isfinite(loss));
  CHECK(losses<Step>({measured, 10, true, at.path}, second) == chosen);
  CHECK(second.measured == 0);
  CHECK(second.remembered == second.shapes);
  std::printf("%d shapes: %d measured, %d candidates, %.2f s; again %.2f s\n", first.shapes, first.measured,
              first.candidates, first.seconds, second.seconds);
}

}  // namespace device_products

using namespace device_products;

TEST_CASE("measured products give the deterministic ones' numbers, and an executor knows what one before it measured") {
  check<step<1, sw::cuda_backend>>();
}
TEST_CASE("measured products on one gpu, fused") { check<step<1, sw::cuda_backend, sw::fuse_kernels>, false>(); }
TEST_CASE("measured products on two gpus") { check<step<2, sw::cuda_backend>>(); }

TEST_CASE("a budget of no time measures nothing, and the products are right") {
  if (!place::has(1)) return;
  const folder at;
  sw::product_report report;
  using other =
      sw::train_step<relu_stack<2, 448>::template model, sum_task<float, 512, 448, sw::on<dp<1>, sw::shard<0>>>,
                     sw::plan<sw::data_parallel<dp<1>>>, mesh<1>, sw::adam<>, sw::pipeline<>, float, sw::cuda_backend>;
  sw::launch_cuda<mesh<1>>([&](auto& rank) {
    sw::executor<other, std::remove_reference_t<decltype(rank)>> ex(
        rank, sw::device_options{.products = {measured, 0, true, at.path}});
    report = ex.products();
  });
  CHECK(report.shapes > 0);
  CHECK(report.measured == 0);
}

TEST_CASE("TF32 is computed where the step's backend says so, and nowhere else") {
  if (!place::has(1)) return;
  const folder at;
  sw::product_report report;
  // before the first update, as above. TF32 keeps ten bits of a factor, and in a sum roundings of either sign cancel
  const auto first = [&]<class Backend>(sw::product_choice choice, Backend) {
    return losses<step<1, Backend>>({choice, 10, false, at.path}, report).at(0);
  };
  const float exact = first(deterministic, sw::cuda_backend{}), rounded = first(deterministic, sw::cuda_backend_tf32{});
  CHECK(rounded != exact);
  CHECK(difference({rounded}, {exact}) < 1e-2);
  CHECK(difference({first(measured, sw::cuda_backend_tf32{})}, {exact}) < 1e-2);
}

TEST_CASE("three products of TF32 for one are refused by a program that was not compiled for them") {
  if (!place::has(1) || sw::cuda::split_product::is_compiled()) return;  // else split_products_sm90a.cu says what they give
  sw::product_report report;
  std::string said;
  try {
    losses<step<1, sw::cuda_backend_tf32x3>>({deterministic, 10, false, ""}, report);
  } catch (const std::exception& e) {
    said = e.what();
  }
  CHECK(said.find("-arch=sm_90a") != std::string::npos);
  CHECK(said.find("sw::cuda_backend") != std::string::npos);
}
