// SPDX-License-Identifier: Apache-2.0
// partial_lower: the subgraphs of a step that become one unit each, with kernels of their own; the step's graphs as files.
#include <shardwise/io/dump_iterations.hpp>
#include <shardwise/io/explain.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <memory>
#include <models.hpp>
#include <sstream>
#include <units.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;
using namespace test;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
template <class... Passes>
using step = sw::train_step<relu_stack<2, 100>::model, sum_task<double, 200, 100, sw::on<dp, sw::shard<0>>>,
                            sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>, sw::pipeline<Passes...>, double>;
using fused = step<sw::fused_optimizer>;
using phases = sw::iterated<fused, sw::finalize<sw::partial_lower<>>>;

// The three programs of an iteration, each by its phase.
template <sw::iteration_phase Phase>
using phase_of = sw::step_phase<Phase, fused, sw::finalize<sw::partial_lower<>>>;
static_assert(std::is_same_v<phases::setup, phase_of<sw::iteration_phase::setup>> &&
              std::is_same_v<phases::main, phase_of<sw::iteration_phase::main>> &&
              std::is_same_v<phases::cleanup, phase_of<sw::iteration_phase::cleanup>> &&
              std::is_same_v<phase_of<sw::iteration_phase::main>::element, double>);

constexpr const auto& facts = sw::lowered_subgraphs<phases::main>();
static_assert(facts.count == 1);  // forward and backward: nothing between them is summed
static_assert(facts.unit[0].nodes == 16 && facts.unit[0].kernels_before == 16 && facts.unit[0].kernels_after == 9);
static_assert(facts.unit[0].inputs == 5 && facts.unit[0].outputs == 5);  // parameters and batch; gradients and loss
static_assert(sw::lowered_subgraphs<phases::setup>().count == 0 && sw::lowered_subgraphs<fused>().count == 0);

TEST_CASE("spmd passes: test_inductor") {
  const auto& plain = fused::program;
  const auto& g = phases::main::program;
  CHECK(is_partition(plain, 10));
  const sw::partition<std::remove_cvref_t<decltype(plain)>::node_capacity> parts = sw::supported_subgraphs(plain);
  CHECK(parts.count == 1);
  CHECK(parts.operations[0] == 16);
  int within = 0;
  for (int i = 0; i < plain.node_count; ++i) within += parts.of[i] == 0 ? 1 : 0;
  CHECK(within == 16);
  CHECK(sw::supported_subgraphs(plain, 17).count == 0);  // one kernel too few: left alone
  CHECK(runs_of_calls(g) == std::vector<int>{1});
  CHECK(sw::unit_count(phases::setup::program) == 0);
  CHECK(sw::unit_count(phases::cleanup::program) == 0);
  int sums = 0, updates = 0;
  for (int i = 0; i < g.node_count; ++i) {
    const bool sum = sw::communicates(sw::detail::transition_at(g, i)), update = sw::is_update(g.nodes[i].op);
    if (sum || update || g.nodes[i].op == op_code::pack) CHECK(sw::unit_of(g, i) == -1);
    sums += sum ? 1 : 0;
    updates += update ? 1 : 0;
  }
  CHECK(sums == 5);
  CHECK(updates == 2);  // the steps' counters and Adam
  static_assert(phases::main::traffic.order_hash == phases::setup::traffic.order_hash);

  const std::vector<sw::subgraph_names> names = sw::lowered_subgraph_names<phases::main>();
  REQUIRE(names.size() == 1);
  // explained: one row of its numbers, and nothing where nothing was lowered
  const std::string table = sw::explain_subgraphs<phases::main>();
  CHECK(table.find("subgraphs lowered to one unit each\n") == 0);
  std::istringstream row(table.substr(table.find("submod_0")));
  std::string of;
  int nodes = 0, inputs = 0, outputs = 0, before = 0, after = 0;
  row >> of >> nodes >> inputs >> outputs >> before >> after;
  CHECK(nodes == static_cast<int>(names[0].members.size()));
  CHECK(inputs == static_cast<int>(names[0].inputs.size()));
  CHECK(outputs == static_cast<int>(names[0].outputs.size()));
  CHECK(before == facts.unit[0].kernels_before);
  CHECK(after == facts.unit[0].kernels_after);
  CHECK(table.find("submod_1") == std::string::npos);
  CHECK(sw::explain_subgraphs<phases::setup>().empty());
  CHECK(sw::explain_subgraphs<fused>().empty());
  CHECK(names[0].name == "submod_0");
  CHECK(names[0].members.size() == 16);
  CHECK(names[0].inputs == std::vector<std::string>{"input", "param", "param_1", "param_2", "param_3"});
  CHECK(names[0].outputs == std::vector<std::string>{"sum", "sum_1", "einsum_3", "sum_2", "einsum_4"});

  const auto folder = std::filesystem::temp_directory_path() / ("shardwise_dump_" + std::to_string(::getpid()));
  const auto files = sw::dump_iterations<phases>(folder.string());
  REQUIRE(files.size() == 12);
  const char* const stems[] = {"before_transformation_gm.txt", "iter_graph_setup_gm.txt", "iter_graph_main_gm.txt",
                               "iter_graph_cleanup_gm.txt"};
  const auto text_of = [](const std::string& path) {
    std::ifstream in(path);
    std::stringstream text;
    text << in.rdbuf();
    return text.str();
  };
  for (std::size_t k = 0; k < 4; ++k) {
    CHECK(std::filesystem::path(files[3 * k]).filename() == stems[k]);
    const std::string text = text_of(files[3 * k]);
    if (k == 0) CHECK(text.find("%adam_3") != std::string::npos);
    else
      CHECK(text ==
            (k == 2 ? sw::to_text(g) : sw::to_text(phases::setup::program)));  // nothing is moved, the main graph is lowered
    CHECK((text.find("# mod.1.fc in submod_0\n") != std::string::npos) == (k == 2));
    CHECK((text_of(files[3 * k + 1]).find("  subgraph cluster_submod_0 { label=\"submod_0\"; room; einsum;") !=
           std::string::npos) == (k == 2));
    CHECK((text_of(files[3 * k + 2]).find("  subgraph submod_0\n    room\n    einsum\n") != std::string::npos) == (k == 2));
  }
  std::filesystem::remove_all(folder);

  // the lowered step is the step: see test_basic_transformation for its results; here of the fused form
  std::vector<double> results[2][2];
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
        auto in = parameters.template input<double>(0);
        for (std::size_t i = 0; i < in.size(); ++i) in[i] = (static_cast<int>(i) * 5 + k + rank.index()) % 7 - 3;
        env.step = k + 1;
        if constexpr (requires { ex->main(); }) ex->run(env, k == 4);
        else ex->run(env);
      }
      for (int i = 0; i < parameters.parameter_count(); ++i)
        for (const double x : parameters.parameter(i)) results[which][rank.index()].push_back(x);
    });
  };
  train(0, [](auto& rank) { return std::make_unique<sw::executor<step<>, std::remove_reference_t<decltype(rank)>>>(rank); });
  train(1, [](auto& rank) {
    return std::make_unique<sw::iterated_executor<phases, std::remove_reference_t<decltype(rank)>>>(rank);
  });
  REQUIRE(results[0][0].size() == 2 * (100 * 100 + 100));
  CHECK(results[1][0] == results[1][1]);
  double most = 0;
  for (std::size_t i = 0; i < results[0][0].size(); ++i)
    most = std::max(most, std::abs(results[0][0][i] - results[1][0][i]) / (1 + std::abs(results[0][0][i])));
  CHECK(most < 1e-12);
}

TEST_CASE("partial lowering: explain names the units") {
  const std::string text = sw::explain<step<sw::fused_optimizer, sw::partial_lower<>>>({"dp"});
  CHECK(text.find("subgraphs lowered to one unit each\n  subgraph  nodes  inputs  outputs  kernels before  after\n"
                  "  submod_0     16       5        5              16      9\n") != std::string::npos);
  CHECK(sw::explain<fused>({"dp"}).find("submod") == std::string::npos);
}

// --- other steps -----------------------------------------------------------------------------------------------------

// A gradient that another kernel stores on the way is stored where a pack places it.
TEST_CASE("partial lowering: values of packs are computed in their place") {
  using listed = step<sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::partial_lower<>>;
  static_assert(sw::lowered_subgraphs<listed>().count == 1);
  static_assert(sw::lowered_subgraphs<listed>().unit[0].kernels_before == 16 &&
                sw::lowered_subgraphs<listed>().unit[0].kernels_after == 9);
  CHECK(runs_of_calls(listed::program) == std::vector<int>{1});
}

// Gradients of sharded weights: their squares are summed within the unit, then over ranks, then to the norm.
TEST_CASE("partial lowering: sums of squares stay in their unit") {
  using sharded = sw::train_step<relu_stack<2, 100>::model, sum_task<double, 200, 100, sw::on<dp, sw::replicate>>,
                                 sw::plan<sw::at<"mod.0.fc", sw::colwise<dp>>, sw::at<"mod.1.fc", sw::rowwise<dp>>>, mesh,
                                 sw::clip_norm<sw::adam<>>, sw::pipeline<sw::partial_lower<sw::core_operations, 2>>, double>;
  const auto& g = sharded::program;
  CHECK(runs_of_calls(g) == std::vector<int>(static_cast<std::size_t>(sw::lowered_subgraphs<sharded>().count), 1));
  int squares = 0;
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == op_code::sumsq) {
      CHECK(sw::unit_of(g, i) >= 0);
      ++squares;
    }
  CHECK(squares == 4);
}

// --- predicates ------------------------------------------------------------------------------------------------------

// Without products: what is left of the model is too little between two of them.
struct no_products {
  template <class Graph>
  static constexpr bool holds(const Graph& g, int i) {
    return g.nodes[i].op != op_code::einsum && sw::core_operations::holds(g, i);
  }
};
using pointwise_only = step<sw::partial_lower<no_products, 2>>;
constexpr const auto& parts = sw::lowered_subgraphs<pointwise_only>();

TEST_CASE("partial lowering: a predicate of the user chooses the operations") {
  static_assert(parts.count == 3);  // the first bias and relu, the second to its adjoint, the first one's adjoint
  for (const sw::lowered_subgraph& u : parts) {
    CHECK(u.kernels_before >= 2);
    CHECK(u.kernels_after <= u.kernels_before);
  }
  const auto& g = pointwise_only::program;
  CHECK(runs_of_calls(g) == std::vector<int>{1, 1, 1});
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op == op_code::einsum) {
      CHECK(sw::unit_of(g, i) == -1);
      CHECK(g.nodes[i].expression == -1);
    }
}

}  // namespace
