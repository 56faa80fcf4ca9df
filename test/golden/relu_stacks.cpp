// SPDX-License-Identifier: Apache-2.0
// Stacks of linear and ReLU layers with Adam under data parallelism: gradients summed (two ranks), averaged (three
// ranks).
#include <doctest/doctest.h>

#include <golden.hpp>
#include <models.hpp>

namespace {

using namespace test;

template <int N>
struct dp : sw::axis<N> {};

// mod.<k>.fc.weight here is mod.<2k>.weight there, where the activations count too.
std::string golden_name(const std::string& name) {
  const int k = std::stoi(name.substr(4));
  return "mod." + std::to_string(2 * k) + name.substr(name.rfind('.'));
}

// World: reference ranks with Batch rows each; Mean: their gradients are averaged.
template <int Layers, int Width, int World, int Batch, bool Mean, class Axis>
void check(const char* name, int iterations) {
  using mesh = sw::mesh<Axis>;
  if (!place::has(mesh::size)) return;
  using plan = sw::plan<sw::data_parallel<Axis>>;
  using split = sw::on<Axis, sw::shard<0>>;
  constexpr int divisor = Mean ? World : 1;
  using step =
      sw::train_step<relu_stack<Layers, Width>::template model, sum_task<double, World * Batch, Width, split, divisor>, plan,
                     mesh, sw::adam<>, sw::pipeline<>, double, place::backend>;
  using rows = sw::forward_step<relu_stack<Layers, Width>::template model, sum_rows<double, World * Batch, Width, split>,
                                plan, mesh, sw::pipeline<>, double, place::backend>;
  const safetensors file(data_file(name));
  CHECK(file.metadata("grad_reduce") == (Mean ? "mean" : "sum"));
  CHECK(file.metadata("optimizer") == "Adam lr=0.01");
  CHECK(file.metadata("world") == std::to_string(World));
  const auto run = run_golden<step, rows>(file, World, iterations, 0.01, false, golden_name, [&](auto& ex, int k) {
    ex.set_input(0, whole_batch<double>(file, World, 0, static_cast<std::size_t>(k), static_cast<std::size_t>(iterations)));
  });
  const golden_errors e = compare(run, file, World, 1.0 / divisor, 1e-9, iterations * 0.01 / 1e-8);
  MESSAGE("losses " << e.loss << ", step's loss " << e.program_loss << ", gradients " << e.gradient << ", parameters "
                    << e.final << " (" << e.beyond << " elements past 1e-9, at most " << e.final_excess << " of the bound)");
  CHECK(run.replicas_equal);
  CHECK(e.tensors == 2 * Layers);
  CHECK(e.loss <= 1e-10);
  CHECK(e.program_loss <= 1e-10);
  CHECK(e.gradient <= 1e-11);
  CHECK(e.final_excess <= 1);
}

TEST_CASE("ten layers of 100, reference on two data-parallel ranks") {
  check<10, 100, 2, 100, false, dp<2>>("spmd_mlp_10x100_adam", 5);
}
TEST_CASE("ten layers of 100, reference on one rank with the whole batch") {
  check<10, 100, 2, 100, false, dp<1>>("spmd_mlp_10x100_adam", 5);
}
TEST_CASE("three layers of 33, reference on three data-parallel ranks") {
  check<3, 33, 3, 7, true, dp<3>>("ddp_mlp_3x33_adam_world3", 5);
}
TEST_CASE("three layers of 33, reference on one rank with the whole batch") {
  check<3, 33, 3, 7, true, dp<1>>("ddp_mlp_3x33_adam_world3", 5);
}
TEST_CASE("three layers of 33, reference batch of 21 on two data-parallel ranks, which do not divide it") {
  check<3, 33, 3, 7, true, dp<2>>("ddp_mlp_3x33_adam_world3", 5);
}

}  // namespace
