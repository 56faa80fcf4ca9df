// SPDX-License-Identifier: Apache-2.0
// Two two-layer perceptrons with SGD, each split column-wise then row-wise: the tensor-parallel reference.
#if SHARDWISE_TEST_JSON

#include <doctest/doctest.h>

#include <golden.hpp>
#include <models.hpp>

namespace {

using namespace test;

template <int N>
struct tp : sw::axis<N> {};

template <class B>
using model = simple_model<B>;

template <class Axis, class Plan>
void check() {
  using mesh = sw::mesh<Axis>;
  if (!place::has(mesh::size)) return;
  using task = sum_task<double, 20, 10, sw::on<Axis, sw::replicate>>;
  using rows = sum_rows<double, 20, 10, sw::on<Axis, sw::replicate>>;
  using step = sw::train_step<model, task, Plan, mesh, sw::sgd<true>, sw::pipeline<>, double, place::backend>;
  using forward = sw::forward_step<model, rows, Plan, mesh, sw::pipeline<>, double, place::backend>;
  const safetensors file(data_file("tp_simple_model"));
  const auto run = run_golden<step, forward>(
      file, 1, 3, 0.1, false, [](const std::string& name) { return name; },
      [&](auto& ex, int k) { ex.set_input(0, whole_batch<double>(file, 1, 0, static_cast<std::size_t>(k), 3)); });
  const golden_errors e = compare(run, file, 1, 1, 1e-9, 0);
  MESSAGE("losses " << e.loss << ", step's loss " << e.program_loss << ", gradients " << e.gradient << ", parameters "
                    << e.final);
  CHECK(run.replicas_equal);
  CHECK(e.tensors == 8);
  CHECK(e.loss <= 1e-10);
  CHECK(e.program_loss <= 1e-10);
  CHECK(e.gradient <= 1e-11);
  CHECK(e.final <= 1e-9);
}

template <class Axis>
using split_plan = sw::plan<sw::at<"*.net1", sw::colwise<Axis>>, sw::at<"*.net2", sw::rowwise<Axis>>>;

TEST_CASE("two perceptrons, reference on one rank") { check<tp<1>, sw::plan<>>(); }
TEST_CASE("two perceptrons, reference on two tensor-parallel ranks") { check<tp<2>, split_plan<tp<2>>>(); }
TEST_CASE("two perceptrons, reference on three tensor-parallel ranks, which do not divide 16") {
  check<tp<3>, split_plan<tp<3>>>();
}
TEST_CASE("two perceptrons, reference on four tensor-parallel ranks") { check<tp<4>, split_plan<tp<4>>>(); }

}  // namespace

#endif
