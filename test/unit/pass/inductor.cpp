// SPDX-License-Identifier: Apache-2.0
// partial_lower: the subgraphs of a step that become one unit each, with kernels of their own; the step's graphs as files.
#include <shardwise/graph/constant_text.hpp>
#include <shardwise/io/dump_iterations.hpp>
#include <shardwise/io/explain.hpp>
#include <shardwise/pass/fuse_collectives.hpp>
#include <shardwise/pass/list_optimizer.hpp>
#include <shardwise/pass/partial_lower.hpp>
#include <shardwise/pass/sequence.hpp>
#include <shardwise/runtime/iterated.hpp>

#include <doctest/doctest.h>

#include <unistd.h>

#include <algorithm>
#include <cmath>
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
using step = sw::train_step<relu_stack<2, 100>::model, sum_task<double, 200, 100, sw::on<dp, sw::shard<0>>>,
                            sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>, sw::pipeline<Passes...>, double>;
using fused = step<sw::fused_optimizer>;
using phases = sw::iterated<fused, sw::finalize<sw::partial_lower<>>>;

// Runs of calls of each unit: one, if it is lowered to a unit indeed. What runs no kernel is no call.
template <class Graph>
std::vector<int> runs_of_calls(const Graph& g) {
  std::vector<int> runs(static_cast<std::size_t>(sw::unit_count(g)));
  int before = -1;
  for (int i = 0; i < g.node_count; ++i) {
    if (!sw::passes::is_kernel(g, i) && !sw::is_update(g.nodes[i].op) && !sw::communicates(sw::detail::transition_at(g, i))) continue;
    const int unit = sw::unit_of(g, i);
    if (unit >= 0 && unit != before) ++runs[static_cast<std::size_t>(unit)];
    before = unit;
  }
  return runs;
}

// No way leads out of a subgraph and back into it; large enough; what must stay outside is outside.
template <class Graph>
bool is_partition(const Graph& g, int least) {
  const auto p = sw::supported_subgraphs(g, least);
  std::vector<int> kernels(static_cast<std::size_t>(p.count));
  for (int i = 0; i < g.node_count; ++i) {
    if (p.of[i] < 0) continue;
    if (!sw::core_operations::holds(g, i)) return false;
    kernels[static_cast<std::size_t>(p.of[i])] += sw::passes::is_kernel(g, i) ? 1 : 0;
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

// How often the longest way comes into supported kernels anew: no partition has fewer parts.
template <class Graph>
int longest_way(const Graph& g) {
  std::vector<int> way(static_cast<std::size_t>(g.node_count));  // odd: the way is among supported kernels
  int most = 0;
  for (int i = 0; i < g.node_count; ++i) {
    if (sw::is_leaf(g.nodes[i].op)) continue;
    int& mine = way[static_cast<std::size_t>(i)];
    for (int k = 0; k < g.nodes[i].inputs; ++k) mine = std::max(mine, way[static_cast<std::size_t>(g.nodes[i].in[k])]);
    const bool supported = sw::core_operations::holds(g, i);
    if (supported ? sw::passes::is_kernel(g, i) && mine % 2 == 0 : mine % 2 == 1) ++mine;
    most = std::max(most, (mine + 1) / 2);
  }
  return most;
}

constexpr const auto& facts = sw::lowered_subgraphs<phases::main>();
static_assert(facts.count == 1);  // forward and backward: nothing between them is summed
static_assert(facts.unit[0].nodes == 16 && facts.unit[0].kernels_before == 16 && facts.unit[0].kernels_after == 9);
static_assert(facts.unit[0].inputs == 5 && facts.unit[0].outputs == 5);  // parameters and batch; gradients and loss
static_assert(sw::lowered_subgraphs<phases::setup>().count == 0 && sw::lowered_subgraphs<fused>().count == 0);

TEST_CASE("spmd passes: test_inductor") {
  const auto& plain = fused::program;
  const auto& g = phases::main::program;
  CHECK(is_partition(plain, 10));
  CHECK(sw::supported_subgraphs(plain).operations[0] == 16);
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

  const auto names = sw::lowered_subgraph_names<phases::main>();
  REQUIRE(names.size() == 1);
  CHECK(names[0].name == "submod_0");
  CHECK(names[0].members.size() == 16);
  CHECK(names[0].inputs == std::vector<std::string>{"input", "param", "param_1", "param_2", "param_3"});
  CHECK(names[0].outputs == std::vector<std::string>{"sum", "sum_1", "einsum_3", "sum_2", "einsum_4"});

  const auto folder = std::filesystem::temp_directory_path() / ("shardwise_dump_" + std::to_string(::getpid()));
  const auto files = sw::dump_iterations<phases>(folder.string());
  REQUIRE(files.size() == 12);
  const char* const stems[] = {"before_transformation_gm.txt", "iter_graph_setup_gm.txt", "iter_graph_main_gm.txt", "iter_graph_cleanup_gm.txt"};
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
    else CHECK(text == (k == 2 ? sw::to_text(g) : sw::to_text(phases::setup::program)));  // nothing is moved, the main graph is lowered
    CHECK((text.find("# mod.1.fc in submod_0\n") != std::string::npos) == (k == 2));
    CHECK((text_of(files[3 * k + 1]).find("  subgraph cluster_submod_0 { label=\"submod_0\"; buffer; einsum;") != std::string::npos) == (k == 2));
    CHECK((text_of(files[3 * k + 2]).find("  subgraph submod_0\n    buffer\n    einsum\n") != std::string::npos) == (k == 2));
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
  train(1, [](auto& rank) { return std::make_unique<sw::iterated_executor<phases, std::remove_reference_t<decltype(rank)>>>(rank); });
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

// --- random graphs ---------------------------------------------------------------------------------------------------

template <int Ranks>
struct fibre : sw::axis<Ranks> {};
template <int Ranks>
using fibres = sw::mesh<fibre<Ranks>>;

constexpr int graph_nodes = 40, graphs = 200, least = 3;
using lowered_graph = sw::graph<2 * graph_nodes, graph_nodes, graph_nodes>;
using lower = sw::partial_lower<sw::core_operations, least>;

lowered_graph random_graph(std::uint64_t seed, int ranks) {
  lowered_graph g;
  copy_into(g, test::random_graph<graph_nodes>(seed, ranks));
  return g;
}

// Nodes outside of units, one after the other, are the same operations on the same operands.
template <class Graph>
bool same_outside(const Graph& before, const Graph& after) {
  std::vector<int> to(static_cast<std::size_t>(before.node_count), -1);
  int j = 0;
  for (int i = 0; i < before.node_count; ++i) {
    if (sw::unit_of(before, i) >= 0) continue;
    while (j < after.node_count && sw::unit_of(after, j) >= 0) ++j;
    if (j == after.node_count) return false;
    const sw::node &a = before.nodes[i], &b = after.nodes[j];
    bool same = a.op == b.op && a.inputs == b.inputs && a.spec == b.spec && a.scope == b.scope && a.expression == b.expression &&
                a.f == b.f && a.a == b.a;
    for (int k = 0; same && k < a.inputs; ++k) {
      const int unit = sw::unit_of(before, a.in[k]);
      same = unit < 0 ? to[static_cast<std::size_t>(a.in[k])] == b.in[k]
                      : sw::unit_of(after, b.in[k]) == unit && before.nodes[a.in[k]].spec == after.nodes[b.in[k]].spec;
    }
    if (!same) return false;
    to[static_cast<std::size_t>(i)] = j++;
  }
  while (j < after.node_count && sw::unit_of(after, j) >= 0) ++j;
  return j == after.node_count;
}

template <int Ranks>
void check_values() {
  int smaller = 0, units = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    const lowered_graph before = random_graph(seed, Ranks);
    CHECK(is_partition(before, least));
    CHECK(sw::supported_subgraphs(before, 1).count == longest_way(before));
    lowered_graph ordered = before, after = before;
    REQUIRE(!lower::order(ordered));
    REQUIRE(!sw::verify(ordered));
    sw::pass_sequence<lowered_graph> passes;
    REQUIRE(passes.apply(sw::entry_of<lower, lowered_graph>(), after).text == "");
    const int had = sw::passes::kernel_calls(ordered).kernels, has = sw::passes::kernel_calls(after).kernels;
    CHECK(has <= had);
    smaller += has < had ? 1 : 0;
    units += sw::unit_count(after);
    bool one_run = same_outside(ordered, after);
    for (const int runs : runs_of_calls(ordered)) one_run = one_run && runs == 1;
    for (const int runs : runs_of_calls(after)) one_run = one_run && runs == 1;
    std::vector<int> wrong(Ranks, 0);
    sw::launch<fibres<Ranks>>([&](auto& rank) {
      sw::eager<std::remove_reference_t<decltype(rank)>> e(rank);
      const auto want = test::run_graph(e, before);
      wrong[static_cast<std::size_t>(rank.index())] = test::run_graph(e, ordered) == want && test::run_graph(e, after) == want ? 0 : 1;
    });
    int different = 0;
    for (const int w : wrong) different += w;
    if (different != 0 || !one_run) {
      INFO("seed " << seed << "\n" << sw::to_text(before) << "\n" << sw::to_text(ordered) << "\n" << sw::to_text(after));
      CHECK(one_run);
      REQUIRE(different == 0);
    }
  }
  MESSAGE(Ranks << " ranks: " << units << " units, " << smaller << " of " << graphs << " graphs with fewer kernels");
  CHECK(units > graphs / 2);
  CHECK(smaller > graphs / 4);
}

TEST_CASE("partial lowering: random graphs give the same bits, nodes outside are the same, every unit is one run") {
  check_values<1>();
  check_values<2>();
  check_values<3>();
}

template <int Seed>
struct random_source {
  static constexpr lowered_graph value = [] {
    lowered_graph g;
    copy_into(g, test::random_graph<graph_nodes>(Seed, 2));
    return g;
  }();
};
template <int Seed>
void check_constants() {
  lowered_graph g = random_source<Seed>::value;
  REQUIRE(!lower::apply(g));
  REQUIRE(sw::unit_count(g) > 0);
  const std::string want = sw::to_text(g);
  CHECK(sw::to_text(lower::template in_stages<random_source<Seed>, 1>::value) == want);
  CHECK(sw::to_text(lower::template in_stages<random_source<Seed>, 24>::value) == want);
  CHECK(sw::to_text(lower::template in_stages<random_source<Seed>, 2000>::value) == want);
}

TEST_CASE("partial lowering: constants become what graphs made at run time become, in stages of any size") {
  check_constants<3>();
  check_constants<17>();
}

// Updates and packs: the order alone, since the runner knows no fused kernels.
using step_graph = sw::graph<420, 420, 64>;

TEST_CASE("partial lowering: subgraphs of random steps, and the same bits of parameters and states in their order") {
  int found = 0, moved = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    const auto before = std::make_unique<step_graph>(), after = std::make_unique<step_graph>();
    copy_into(*before, test::random_step<420, 32>(seed, 2, 9, true));
    if (seed % 2 == 0) REQUIRE(!sw::fused_optimizer::apply(*before));
    sw::passes::remove_dead(*before);
    CHECK(is_partition(*before, least));
    *after = *before;
    REQUIRE(!lower::order(*after));
    REQUIRE(!sw::verify(*after));
    REQUIRE(!sw::verify([&] {
      step_graph g = *before;
      REQUIRE(!lower::apply(g));
      return g;
    }()));
    found += sw::unit_count(*after);
    moved += sw::to_text(*after) != sw::to_text(*before) ? 1 : 0;
    std::vector<int> wrong(2, 0);
    const std::int64_t workspace = std::max(graph_runner<sw::thread_rank<fibres<2>>, step_graph>::workspace_of(*before),
                                            graph_runner<sw::thread_rank<fibres<2>>, step_graph>::workspace_of(*after));
    sw::launch<fibres<2>>([&](auto& rank) {
      using runner = graph_runner<std::remove_reference_t<decltype(rank)>, step_graph>;
      runner plain(rank, *before, workspace), ordered(rank, *after, workspace);
      plain.start();
      ordered.start();
      sw::step_env env;
      env.lr = 0.01;
      for (int k = 0; k < 3; ++k) {
        env.step = k + 1;
        for (runner* r : {&plain, &ordered}) {
          r->feed(k);
          r->run(env);
        }
        if (plain.outputs() != ordered.outputs() || plain.leaves() != ordered.leaves()) wrong[static_cast<std::size_t>(rank.index())] = 1;
      }
    });
    if (wrong[0] + wrong[1] != 0) {
      INFO("seed " << seed << "\n" << sw::to_text(*before) << "\n" << sw::to_text(*after));
      REQUIRE(wrong[0] + wrong[1] == 0);
    }
  }
  CHECK(found > 200);
  CHECK(moved > 100);
}

}  // namespace
