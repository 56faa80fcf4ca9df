// SPDX-License-Identifier: Apache-2.0
// Training steps of GPUs on paper: all that the host does is done, on meshes of 1 to 8 devices, and kernels are launched that do nothing. Every
// launch finds its kernel, ranks come to the same collectives, nothing waits inside of a capture, and a replay launches one graph and nothing else.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <gpt.hpp>

#include <shardwise/operations/attention/device_elements.cuh>
#include <shardwise/pass/communication/waits.hpp>

#include "counts.hpp"

namespace {

namespace sw = shardwise;
using namespace test::gpt;

template <class Program>
void check_steps() {
  REQUIRE(test::place::has(Program::mesh_type::size));
  constexpr int ranks = Program::mesh_type::size;
  std::int64_t kernels = 0, graphs = 0, once = 0, again = 0;
  test::place::launch<typename Program::mesh_type>([&](auto& rank) {
    using Rank = std::remove_reference_t<decltype(rank)>;
    sw::executor<Program, Rank> graph(rank), stream(rank, sw::device_execution::stream),
        watched(rank, sw::executor_checks::finite);
    const auto three = [&](auto& ex) {
      for (int s = 1; s <= 3; ++s) {
        feed(ex, s);
        ex.run(environment(s));
        CHECK(ex.loss() == 0);
      }
    };
    const auto counted = [&](std::int64_t& sum, std::int64_t (*count)(), const auto& f) {
      rank.barrier();
      const std::int64_t before = count();
      rank.barrier();
      f();
      rank.barrier();
      if (rank.index() == 0) sum = count() - before;
      rank.barrier();
    };
    graph.initialise(7);
    stream.initialise(7);
    watched.initialise(7);
    three(graph);  // numbers of a run that are new are stored by a kernel
    counted(graphs, &paper::launched_graphs, [&] { graph.run(environment(3)); });
    counted(kernels, &paper::launched_kernels, [&] { graph.run(environment(3)); });
    three(stream);
    counted(once, &paper::launched_kernels, [&] { stream.run(environment(3)); });
    counted(again, &paper::launched_kernels, [&] { stream.run(environment(3)); });
    three(watched);
    std::vector<typename Program::element> whole(static_cast<std::size_t>(sw::numel(graph.parameter_spec(0))));
    graph.gather_parameter(0, whole);
  });
  CHECK(graphs == ranks);
  CHECK(kernels == 0);
  CHECK(once == again);
  CHECK(once > 50 * ranks);
}

TEST_CASE("on paper: a step of one device") { check_steps<step<float, 1, 1>>(); }
TEST_CASE("on paper: a step of three data-parallel devices, which do not divide the batch") {
  check_steps<step<float, 3, 1>>();
}
TEST_CASE("on paper: a step of four devices that split the heads, sequence parallel") {
  check_steps<step<float, 1, 4, sequence_parallel>>();
}
TEST_CASE("on paper: a step of two times four devices, collectives beside kernels") {
  check_steps<step<float, 2, 4, tensor_parallel, sizes, test::place, sw::pipeline<sw::schedule_comm_wait>>>();
}

}  // namespace

SHARDWISE_DEVICE_ATTENTION(float)
