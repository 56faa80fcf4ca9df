// SPDX-License-Identifier: Apache-2.0
// Two two-layer perceptrons with SGD, each split column-wise then row-wise: the tensor-parallel reference.
#include <doctest/doctest.h>

#include <golden.hpp>
#include <models.hpp>

namespace {

using namespace test;

template <int N>
struct tp : sw::axis<N> {};

template <class B>
using model = simple_model<B>;

template <int N>
struct dp : sw::axis<N> {};
// A GPU's matrix product may add in an order of its own.
constexpr double tolerance = std::is_same_v<place::backend, sw::host_backend> ? 1e-12 : 1e-11;

// `Placement` is the input's, on<axis, ...>.
template <class Mesh, class Plan, class Placement>
void check() {
  if (!place::has(Mesh::size)) return;
  using task = sum_task<double, 20, 10, Placement>;
  using rows = sum_rows<double, 20, 10, Placement>;
  using step = sw::train_step<model, task, Plan, Mesh, sw::sgd<true>, sw::pipeline<>, double, place::backend>;
  using forward = sw::forward_step<model, rows, Plan, Mesh, sw::pipeline<>, double, place::backend>;
  const safetensors file(data_file("tp_simple_model"));
  const auto run = run_golden<step, forward>(
      file, 1, 3, 0.1, false, [](const std::string& name) { return name; },
      [&](auto& ex, int k) { ex.set_input(0, whole_batch<double>(file, 1, 0, static_cast<std::size_t>(k), 3)); });
  const golden_errors e = compare(run, file, 1, 1, 1e-9, 0);
  MESSAGE("losses " << e.loss << ", step's loss " << e.program_loss << ", gradients " << e.gradient << ", parameters "
                    << e.final);
  CHECK(run.replicas_equal);
  CHECK(e.tensors == 8);
  CHECK(e.loss <= tolerance);
  CHECK(e.program_loss <= tolerance);
  CHECK(e.gradient <= tolerance);
  CHECK(e.final <= tolerance);
}

template <class Axis>
using split_plan = sw::plan<sw::at<"*.net1", sw::colwise<Axis>>, sw::at<"*.net2", sw::rowwise<Axis>>>;
// rows of the batch between the products' pairs
template <class Axis>
using sequence_plan =
    sw::plan<sw::at<"*", sw::prepare_input<Axis, sw::replicate, sw::shard<0>>>, sw::at<"*.net1", sw::colwise<Axis>>,
             sw::at<"*.net2", sw::rowwise<Axis, 1, sw::output<sw::shard<0>>>>>;
template <class Dp, class Axis>
using grid_plan = sw::plan<sw::data_parallel<Dp>, sw::at<"*.net1", sw::colwise<Axis>>, sw::at<"*.net2", sw::rowwise<Axis>>>;

template <int N>
using line = sw::mesh<tp<N>>;
template <int N>
using whole = sw::on<tp<N>, sw::replicate>;
template <class Axis>
using batch = sw::on<Axis, sw::shard<0>>;
template <int D, int T>
void check_grid() {
  check<sw::mesh<dp<D>, tp<T>>, grid_plan<dp<D>, tp<T>>, batch<dp<D>>>();
}

TEST_CASE("two perceptrons, reference on one rank") { check<line<1>, sw::plan<>, whole<1>>(); }
TEST_CASE("two perceptrons, reference on two tensor-parallel ranks") { check<line<2>, split_plan<tp<2>>, whole<2>>(); }
TEST_CASE("two perceptrons, reference on three tensor-parallel ranks, which do not divide 16") {
  check<line<3>, split_plan<tp<3>>, whole<3>>();
}
TEST_CASE("two perceptrons, reference on four tensor-parallel ranks") { check<line<4>, split_plan<tp<4>>, whole<4>>(); }
TEST_CASE("two perceptrons, reference on four tensor-parallel ranks that share the rows between products") {
  check<line<4>, sequence_plan<tp<4>>, batch<tp<4>>>();
}
TEST_CASE("two perceptrons, reference on two and three data-parallel ranks") {
  check<sw::mesh<dp<2>>, sw::plan<sw::data_parallel<dp<2>>>, batch<dp<2>>>();
  check<sw::mesh<dp<3>>, sw::plan<sw::data_parallel<dp<3>>>, batch<dp<3>>>();
}
TEST_CASE("two perceptrons, reference on data parallel times tensor parallel") { check_grid<2, 2>(); }

}  // namespace
