// SPDX-License-Identifier: Apache-2.0
// The tied transformer with Adam, two data-parallel ranks: losses, gradients and parameters of the reference.
#include <doctest/doctest.h>

#include <string>

#include <golden.hpp>
#include <models.hpp>

namespace {

using namespace test;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

using sizes = transformer_sizes;
template <class B>
using model = transformer<sizes>::model<B>;

template <class Mesh, class Plan, class Dp>
golden_errors errors(const char* reference) {
  using step =
      sw::train_step<model, language_task<sizes, 4, Dp>, Plan, Mesh, sw::adam<>, sw::pipeline<>, double, place::backend>;
  using rows = sw::forward_step<model, language_rows<sizes, 4, Dp>, Plan, Mesh, sw::pipeline<>, double, place::backend>;
  const safetensors file(data_file(reference));
  std::vector<std::int32_t> positions;
  for (int i = 0; i < sizes::time; ++i) positions.push_back(i);
  const auto run = run_golden<step, rows>(
      file, 2, 10, 1e-3, true, [](const std::string& name) { return name; },
      [&](auto& ex, int k) {
        ex.set_input(0, whole_batch<std::int32_t>(file, 2, 0, static_cast<std::size_t>(k), 10));
        ex.set_input(1, whole_batch<std::int32_t>(file, 2, 1, static_cast<std::size_t>(k), 10));
        ex.set_input(2, positions);
      });
  CHECK(run.replicas_equal);
  return compare(run, file, 2, 0.5, 1e-9, 10 * 1e-3 / 1e-8);
}

struct tolerances {
  double loss, gradient, final;
};

template <class Mesh, class Plan, class Dp>
void check(const char* reference, tolerances allowed) {
  const golden_errors e = errors<Mesh, Plan, Dp>(reference);
  MESSAGE(std::string(reference) << ": losses " << e.loss << ", step's loss " << e.program_loss << ", gradients "
                                 << e.gradient << ", parameters " << e.final << " (" << e.beyond
                                 << " elements past 1e-9, at most " << e.final_excess << " of the bound)");
  CHECK(e.tensors == 28);
  CHECK(e.loss <= allowed.loss);
  CHECK(e.program_loss <= allowed.loss);
  CHECK(e.gradient <= allowed.gradient);
  CHECK(e.final <= allowed.final);
  CHECK(e.final_excess <= 1);
}

// The first reference casts its logits to float32 and takes the cross entropy there, so its losses are float32 numbers
// and its gradients carry their rounding; the second is the same run in float64 throughout.
template <class Mesh, class Plan, class Dp>
void check_both() {
  if (!place::has(Mesh::size)) return;
  check<Mesh, Plan, Dp>("fsdp_transformer_xent_adam", {2e-7, 2e-7, 1e-8});
  check<Mesh, Plan, Dp>("fsdp_transformer_xent_adam_f64", {1e-10, 1e-11, 1e-9});
}

TEST_CASE("transformer reference on two data-parallel ranks") {
  check_both<sw::mesh<dp<2>>, sw::plan<sw::data_parallel<dp<2>>>, dp<2>>();
}

TEST_CASE("transformer reference on one rank with the whole batch") {
  check_both<sw::mesh<dp<1>>, sw::plan<sw::data_parallel<dp<1>>>, dp<1>>();
}

TEST_CASE("transformer reference on two data-parallel times two tensor-parallel ranks") {
  using axis = tp<2>;
  using plan =
      sw::plan<sw::data_parallel<dp<2>>, sw::at<"layers.*.attention.wq", sw::colwise<axis, 4>>,
               sw::at<"layers.*.attention.wk", sw::colwise<axis, 4>>, sw::at<"layers.*.attention.wv", sw::colwise<axis, 4>>,
               sw::at<"layers.*.attention.wo", sw::rowwise<axis, 4>>, sw::at<"layers.*.feed_forward.w1", sw::colwise<axis>>,
               sw::at<"layers.*.feed_forward.w2", sw::rowwise<axis>>>;
  check_both<sw::mesh<dp<2>, axis>, plan, dp<2>>();
}

}  // namespace
