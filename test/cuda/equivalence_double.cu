// SPDX-License-Identifier: Apache-2.0
// A language model trained on GPUs gives the losses of one host thread, for every mesh, in double.
#define SHARDWISE_TEST_DEVICES 1
#include <equivalence.hpp>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

TEST_CASE("gpt in double on one gpu") { check_equivalence<double, 1, 1>(); }
TEST_CASE("gpt in double on two gpus, data parallel") { check_equivalence<double, 2, 1>(); }
TEST_CASE("gpt in double on two gpus, tensor parallel") { check_equivalence<double, 1, 2>(); }
TEST_CASE("gpt in double on two times two gpus") { check_equivalence<double, 2, 2>(); }
TEST_CASE("gpt in double on four gpus that split the heads, sequence parallel") {
  check_equivalence<double, 1, 4, sequence_parallel>();
}
TEST_CASE("gpt in double on three data-parallel gpus, which do not divide the batch") { check_equivalence<double, 3, 1>(); }
TEST_CASE("gpt in double on one gpu, dropout") { check_equivalence<double, 1, 1, tensor_parallel, dropout_sizes>(); }

// Nothing in a step allocates, so replays leave the device's free memory as it was.
TEST_CASE("a replayed step takes no device memory, and a second run repeats it to the bit") {
  if (!test::place::has(1)) return;
  using program = step<double, 1, 1>;
  test::place::launch<typename program::mesh_type>([](auto& rank) {
    sw::executor<program, std::remove_reference_t<decltype(rank)>> graph(rank);
    sw::executor<program, std::remove_reference_t<decltype(rank)>> stream(rank, sw::device_execution::stream);
    std::vector<double> losses[2];
    for (int which = 0; which < 2; ++which) {
      auto& ex = which == 0 ? graph : stream;
      ex.initialise(7);
      for (int s = 1; s <= 5; ++s) {
        feed(ex, s);
        ex.run(environment(s));
        losses[which].push_back(ex.loss());
      }
    }
    CHECK(losses[0] == losses[1]);
    std::size_t before = 0, after = 0, all = 0;
    cudaMemGetInfo(&before, &all);
    for (int s = 6; s <= 50; ++s) graph.run(environment(s));
    graph.synchronize();
    cudaMemGetInfo(&after, &all);
    CHECK(before == after);
  });
}

// A bad index in the data ends in a sentence with its place, not in a crash or a hang.
TEST_CASE("an index outside the table is reported with its place") {
  if (!test::place::has(1)) return;
  using program = step<double, 1, 1>;
  test::place::launch<typename program::mesh_type>([](auto& rank) {
    sw::executor<program, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(7);
    data d = batch_of(1);
    d.tokens[3] = sizes::vocabulary;
    ex.set_input(0, d.tokens);
    ex.set_input(1, d.targets);
    ex.set_input(2, d.positions);
    ex.run(environment(1));
    std::string said;
    try {
      ex.loss();
    } catch (const std::out_of_range& e) {
      said = e.what();
    }
    CHECK(said.find("index 256 is outside 0..255") != std::string::npos);
    CHECK(said.find("in embedding, module tok_embeddings, rank 0") != std::string::npos);
    feed(ex, 1);
    ex.run(environment(1));
    CHECK(std::isfinite(ex.loss()));
  });
}

}  // namespace
