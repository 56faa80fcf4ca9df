// SPDX-License-Identifier: Apache-2.0
// partial_lower on random graphs: the same bits, nodes outside of units untouched, each unit one run, as few as can be;
// constants in stages of any size become what graphs made at run time become.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/framework/sequence.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random_step.hpp>
#include <string>
#include <units.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test;

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
    bool same = a.op == b.op && a.inputs == b.inputs && a.spec == b.spec && a.scope == b.scope &&
                a.expression == b.expression && a.f == b.f && a.a == b.a;
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
      wrong[static_cast<std::size_t>(rank.index())] =
          test::run_graph(e, ordered) == want && test::run_graph(e, after) == want ? 0 : 1;
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
        if (plain.outputs() != ordered.outputs() || plain.leaves() != ordered.leaves())
          wrong[static_cast<std::size_t>(rank.index())] = 1;
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
