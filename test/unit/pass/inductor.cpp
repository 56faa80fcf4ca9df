// SPDX-License-Identifier: Apache-2.0
// Which parts of a step can be lowered together, and the step's graphs as files.
#include <shardwise/io/dump_iterations.hpp>
#include <shardwise/pass/fuse_collectives.hpp>
#include <shardwise/pass/list_optimizer.hpp>
#include <shardwise/pass/partition.hpp>
#include <shardwise/runtime/iterated.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <models.hpp>
#include <random_step.hpp>
#include <sstream>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;
using namespace test;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
template <class... Passes>
using step = sw::train_step<relu_stack<2, 100>::model, sum_task<float, 200, 100, sw::on<dp, sw::shard<0>>>,
                            sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>, sw::pipeline<Passes...>>;
using fused = step<sw::fused_optimizer>;
using phases = sw::iterated<fused>;

// No way leads out of a subgraph and back into it; large enough; what must stay outside is outside.
template <class Graph>
bool is_partition(const Graph& g, int least) {
  const auto p = sw::supported_subgraphs(g, least);
  std::vector<int> kernels(static_cast<std::size_t>(p.count));
  for (int i = 0; i < g.node_count; ++i) {
    if (p.of[i] < 0) continue;
    if (!sw::passes::is_supported(g, i)) return false;
    kernels[static_cast<std::size_t>(p.of[i])] += sw::runs_kernel(g.nodes[i].op) ? 1 : 0;
  }
  for (int s = 0; s < p.count; ++s) {
    if (kernels[static_cast<std::size_t>(s)] < least || kernels[static_cast<std::size_t>(s)] != p.operations[s]) return false;
    // 1: in it or after it by nodes of it; 2: after it by a node outside
    std::vector<int> after(static_cast<std::size_t>(g.node_count));
    for (int i = 0; i < g.node_count; ++i) {
      int& mine = after[static_cast<std::size_t>(i)];
      for (int k = 0; k < g.nodes[i].inputs; ++k)
        if (after[static_cast<std::size_t>(g.nodes[i].in[k])] != 0)
          mine = std::max(mine, p.of[i] == s ? after[static_cast<std::size_t>(g.nodes[i].in[k])] : 2);
      if (p.of[i] == s && mine == 2) return false;
      if (p.of[i] == s) mine = 1;
    }
  }
  return true;
}

TEST_CASE("spmd passes: test_inductor") {
  const auto& g = phases::main::program;
  const auto p = sw::supported_subgraphs(g);
  CHECK(is_partition(g, 10));
  REQUIRE(p.count == 1);  // forward and backward: nothing between them is summed
  CHECK(p.operations[0] >= 10);
  int sums = 0, updates = 0;
  for (int i = 0; i < g.node_count; ++i) {
    const bool sum = sw::communicates(sw::detail::transition_at(g, i)), update = sw::is_update(g.nodes[i].op);
    if (sum || update) CHECK(p.of[i] == -1);
    sums += sum ? 1 : 0;
    updates += update ? 1 : 0;
  }
  CHECK(sums == 5);
  CHECK(updates == 2);                                          // the steps' counters and Adam
  CHECK(sw::supported_subgraphs(g, p.operations[0] + 1).count == 0);  // one kernel too few: left alone

  const auto folder = std::filesystem::temp_directory_path() / ("shardwise_dump_" + std::to_string(::getpid()));
  const auto files = sw::dump_iterations<phases>(folder.string());
  REQUIRE(files.size() == 12);
  const char* const names[] = {"before_transformation_gm.txt", "iter_graph_setup_gm.txt", "iter_graph_main_gm.txt", "iter_graph_cleanup_gm.txt"};
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(std::filesystem::path(files[3 * k]).filename() == names[k]);
    std::ifstream in(files[3 * k]);
    std::stringstream text;
    text << in.rdbuf();
    if (k == 0) CHECK(text.str().find("%adam_3") != std::string::npos);
    else CHECK(text.str() == sw::to_text(g));  // nothing is moved
  }
  std::filesystem::remove_all(folder);

  // the lowered step is the step: see test_basic_transformation for its results; here of the fused form
  std::vector<float> results[2][2];
  const auto train = [&](int which, auto make) {
    sw::launch<mesh>([&](auto& rank) {
      auto ex = make(rank);
      auto& parameters = [&]() -> auto& {
        if constexpr (requires { ex->main(); }) return ex->main();
        else return *ex;
      }();
      parameters.initialise(2);
      sw::step_env env;
      env.lr = 0.01;
      for (int k = 0; k < 5; ++k) {
        auto in = parameters.template input<float>(0);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>((static_cast<int>(i) * 5 + k + rank.index()) % 7) - 3.0F;
        env.step = k + 1;
        if constexpr (requires { ex->main(); }) ex->run(env, k == 4);
        else ex->run(env);
      }
      for (int i = 0; i < parameters.parameter_count(); ++i)
        for (const float x : parameters.parameter(i)) results[which][rank.index()].push_back(x);
    });
  };
  train(0, [](auto& rank) { return std::make_unique<sw::executor<step<>, std::remove_reference_t<decltype(rank)>>>(rank); });
  train(1, [](auto& rank) { return std::make_unique<sw::iterated_executor<phases, std::remove_reference_t<decltype(rank)>>>(rank); });
  CHECK(results[0][0].size() == 2 * (100 * 100 + 100));
  for (int r = 0; r < 2; ++r) {
    const bool same = results[0][r] == results[1][r] && results[0][r] == results[0][0];
    CHECK(same);
  }
}

TEST_CASE("spmd passes: subgraphs of random steps") {
  int found = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const auto g = std::make_unique<test::value_graph<420>>(test::random_step<420, 32>(seed, 2, 9, true));
    CHECK(is_partition(*g, 3));
    found += sw::supported_subgraphs(*g, 3).count;
  }
  CHECK(found > 200);
}

}  // namespace
