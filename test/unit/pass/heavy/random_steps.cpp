// SPDX-License-Identifier: Apache-2.0
// The passes over whole steps on 200 random training graphs: the same bits in outputs, parameters and states after three
// iterations, on 1, 2 and 4 ranks; and constants in stages of any size give the graphs that run-time values give.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/framework/sequence.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <memory>
#include <random_step.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;

template <int Ranks>
struct fibre : sw::axis<Ranks> {};
template <int Ranks>
using mesh = sw::mesh<fibre<Ranks>>;

constexpr int body = 32, capacity = 420, graphs = 200;
using graph = test::value_graph<capacity>;

// Buckets that small graphs fill: the first is closed at 64 bytes, the others at 300.
template <bool Copies>
struct small_buckets : sw::passes::fuse_rules<Copies> {
  template <class In, class Out>
  struct state : sw::passes::fuse_rules<Copies>::template state<In, Out> {
    using base = typename sw::passes::fuse_rules<Copies>::template state<In, Out>;
    constexpr void begin(const In& g) {
      for (std::int64_t& cap : base::caps) cap = 300;
      base::begin(g);
      base::first = 64;
    }
  };
};
struct fuse_with_copies : sw::passes::rewriting<small_buckets<true>> {
  using key = sw::comm_fusion;
  using preserves = sw::passes_list<sw::kept::outputs, sw::kept::updates>;
};
struct fuse_in_place : sw::passes::rewriting<small_buckets<false>> {
  using key = sw::comm_fusion;
  using preserves = sw::passes_list<sw::kept::outputs, sw::kept::updates>;
};
// The first fused update of more than one gradient, by its first one.
struct split_first : sw::passes::split_rules {
  template <class In, class Out>
  struct state : sw::passes::split_rules::state<In, Out> {
    using base = sw::passes::split_rules::state<In, Out>;
    constexpr void begin(const In& g) {
      base::begin(g);
      for (const int u : sw::get_all_fused_optimizer_blocks(g)) {
        const auto gradients = sw::packed_tensors(g, sw::passes::block_at(g, u).gradients);
        if (gradients.count < 2) continue;
        base::chosen[gradients.id[0]] = true;
        return base::choose(g, u, 1);
      }
    }
  };
};
struct split_some : sw::passes::rewriting<split_first> {
  using preserves = sw::passes_list<sw::kept::outputs, sw::kept::collectives>;
};

template <class... P>
std::string apply(graph& g) {
  sw::pass_sequence<graph> sequence;
  std::string text;
  const auto one = [&](const auto& entry) {
    if (text.empty()) text = sequence.apply(entry, g).text;
  };
  (one(sw::entry_of<P, graph>()), ...);
  return text;
}

struct variant {
  const char* name;
  std::string (*make)(graph&);
};
constexpr variant variants[] = {
    {"fusion with copies", &apply<fuse_with_copies>},
    {"fusion in place", &apply<fuse_in_place>},
    {"fused", &apply<sw::fused_optimizer>},
    {"foreach", &apply<sw::foreach_optimizer>},
    {"foreach, copies removed", &apply<sw::foreach_optimizer, sw::remove_copy_from_optimizer>},
    {"fused, fusion with copies", &apply<sw::fused_optimizer, fuse_with_copies>},
    {"fused, fusion, copies removed", &apply<sw::fused_optimizer, fuse_in_place, sw::remove_copy_from_optimizer>},
    {"foreach, fusion, copies removed", &apply<sw::foreach_optimizer, fuse_in_place, sw::remove_copy_from_optimizer>},
    {"fusion, then fused", &apply<fuse_in_place, sw::fused_optimizer, sw::remove_copy_from_optimizer>},
    {"fused, split", &apply<sw::fused_optimizer, split_some>},
    {"all", &apply<sw::fused_optimizer, fuse_in_place, sw::remove_copy_from_optimizer, split_some>},
};
constexpr int variant_count = static_cast<int>(sizeof(variants) / sizeof(variants[0]));

constexpr int iterations = 3;
sw::step_env numbers(int k) {
  sw::step_env env;
  env.step = k + 1;
  env.lr = 0.01;
  env.momentum = 0.9;
  env.weight_decay = 0.1;
  return env;
}

struct outcome_bits {
  std::vector<std::vector<std::uint32_t>> outputs;
  std::map<std::pair<int, int>, std::vector<std::uint32_t>> leaves;
  bool operator==(const outcome_bits&) const = default;
};
template <class Rank>
outcome_bits run_steps(Rank& rank, const graph& g) {
  test::graph_runner<Rank, graph> runner(rank, g, test::graph_runner<Rank, graph>::workspace_of(g));
  runner.start();
  for (int k = 0; k < iterations; ++k) {
    runner.feed(k);
    runner.run(numbers(k));
  }
  return {runner.outputs(), runner.leaves()};
}

template <int Ranks>
void check_variants() {
  int fewer[variant_count]{}, changed[variant_count]{}, updates = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    const auto before = std::make_unique<graph>(test::random_step<capacity, body>(seed, Ranks, 9, seed % 2 == 0));
    REQUIRE(!sw::verify(*before));
    sw::passes::remove_dead(*before);
    updates += sw::kept::updates::of(*before);
    std::vector<std::unique_ptr<graph>> after;
    for (int v = 0; v < variant_count; ++v) {
      after.push_back(std::make_unique<graph>(*before));
      const std::string wrong = variants[v].make(*after.back());
      if (v + 2 == variant_count && wrong.find("Only fused_adam") != std::string::npos) continue;
      INFO("seed " << seed << ", " << std::string(variants[v].name));
      REQUIRE(wrong == "");
      const int had = sw::passes::order_of(*before).collectives, has = sw::passes::order_of(*after.back()).collectives;
      fewer[v] += has < had ? 1 : 0;
      changed[v] += after.back()->node_count != before->node_count ? 1 : 0;
    }
    std::vector<int> wrong(static_cast<std::size_t>(Ranks), -1);
    sw::launch<mesh<Ranks>>([&](auto& rank) {
      const outcome_bits want = run_steps(rank, *before);
      for (int v = 0; v < variant_count; ++v) {
        if (!(run_steps(rank, *after[static_cast<std::size_t>(v)]) == want))
          wrong[static_cast<std::size_t>(rank.index())] = v;
      }
    });
    for (const int v : wrong) {
      if (v < 0) continue;
      INFO("seed " << seed << ", " << std::string(variants[v].name) << "\n"
                   << sw::to_text(*before) << "\n"
                   << sw::to_text(*after[static_cast<std::size_t>(v)]));
      REQUIRE(v < 0);
    }
  }
  for (int v = 0; v < variant_count; ++v) {
    MESSAGE(Ranks << " ranks, " << std::string(variants[v].name) << ": " << changed[v] << " graphs changed, " << fewer[v]
                  << " with fewer collectives");
    if (Ranks > 1 || v > 1) CHECK(changed[v] > graphs / 4);
  }
  CHECK(updates > 4 * graphs);
  if (Ranks > 1)
    for (const int v : {0, 1, 5, 6, 7, 8}) CHECK(fewer[v] > graphs / 4);
}

TEST_CASE("spmd passes: random steps on one rank give the same bits after every pass") { check_variants<1>(); }
TEST_CASE("spmd passes: random steps on two ranks give the same bits after every pass") { check_variants<2>(); }
TEST_CASE("spmd passes: random steps on four ranks give the same bits after every pass") { check_variants<4>(); }

// --- moves -----------------------------------------------------------------------------------------------------------

// Iterations of the three phases, which share an arena: leaves must lie at the same offsets.
template <class Rank>
outcome_bits run_phases(Rank& rank, const graph (&phase)[3], int count) {
  using runner = test::graph_runner<Rank, graph>;
  std::int64_t workspace = 0;
  for (const graph& g : phase) workspace = std::max(workspace, runner::workspace_of(g));
  std::vector<std::byte> memory(1 << 20, std::byte{0xFF});
  runner setup(rank, phase[0], workspace, &memory), main(rank, phase[1], workspace, &memory),
      cleanup(rank, phase[2], workspace, &memory);
  REQUIRE(memory.size() == std::size_t{1} << 20);
  setup.start();
  for (int k = 0; k < count; ++k) {
    runner& now = k == 0 ? setup : k + 1 == count ? cleanup : main;
    now.feed(k);
    now.run(numbers(k));
  }
  return {cleanup.outputs(), cleanup.leaves()};
}
template <class Rank>
outcome_bits run_plainly(Rank& rank, const graph& g, int count) {
  test::graph_runner<Rank, graph> runner(rank, g, test::graph_runner<Rank, graph>::workspace_of(g));
  runner.start();
  for (int k = 0; k < count; ++k) {
    runner.feed(k);
    runner.run(numbers(k));
  }
  return {runner.outputs(), runner.leaves()};
}

template <int Ranks>
void check_moves() {
  int accepted = 0, hazards = 0, others = 0, kept = 0, by_name = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    auto g = std::make_unique<graph>(test::random_step<capacity, body>(seed, Ranks, 9, true));
    if (seed % 2 == 0) {
      REQUIRE(apply<sw::fused_optimizer, fuse_in_place, sw::remove_copy_from_optimizer>(*g) == "");
    } else {
      REQUIRE(apply<sw::foreach_optimizer, fuse_with_copies>(*g) == "");
    }
    auto m = std::make_unique<sw::iteration_module<graph>>(sw::iteration_module<graph>{*g, {}});
    test::dice roll{seed + 1000, 0};
    if (seed % 4 == 0)  // a bucket and its part of the updates
      for (int at = 0; at < g->node_count && m->moves.count == 0; ++at)
        for (const char* comm : {"all_reduce", "all_reduce_1", "all_reduce_2"})
          for (const char* before : {"relu", "tanh", "scale", "redistribute", "add"})
            if (m->moves.count == 0 && !sw::passes::move_comm_block(*m, comm, before)) ++by_name;
    for (int attempt = 0; attempt < 60 && m->moves.count < 3; ++attempt) {
      int roots[2] = {roll(m->g.node_count), -1};
      int count = 1;
      if (const int step = sw::passes::block_at(m->g, roots[0]).step; step >= 0) roots[count++] = step;
      const auto set = sw::find_all_descendants(m->g, roots, count);
      const sw::finding f = m->move_to_next_iter_before(set, roll(m->g.node_count));
      accepted += f ? 0 : 1;
      hazards += f.what == sw::problem::move_hazard ? 1 : 0;
      others += f && f.what != sw::problem::move_hazard ? 1 : 0;
    }
    if (m->moves.count == 0) continue;
    m->finalize();
    CHECK(m->move_to_next_iter_before(std::vector<int>{0}, 1).what == sw::problem::move_frozen);
    kept += m->kept_values();
    const auto phase = std::make_unique<graph[]>(3);
    const sw::finding made[] = {m->template phase<sw::iteration_phase::setup>(phase[0]),
                                m->template phase<sw::iteration_phase::main>(phase[1]),
                                m->template phase<sw::iteration_phase::cleanup>(phase[2])};
    for (const sw::finding& f : made) REQUIRE(static_cast<int>(f.what) == 0);
    for (std::size_t k = 0; k < 3; ++k) {
      const sw::finding f = sw::verify(phase[k]);
      INFO("seed " << seed << ", phase " << k << ", node " << f.operand << ": " << std::string(sw::sentence(f.what)) << "\n"
                   << sw::to_text(phase[k]));
      REQUIRE(!f);
    }
    std::vector<int> wrong(static_cast<std::size_t>(Ranks), 0);
    sw::launch<mesh<Ranks>>([&](auto& rank) {
      for (const int count : {2, 3, 5})
        if (!(run_phases(rank, *reinterpret_cast<const graph(*)[3]>(phase.get()), count) == run_plainly(rank, *g, count)))
          wrong[static_cast<std::size_t>(rank.index())] = count;
    });
    for (const int w : wrong) {
      INFO("seed " << seed << ", " << w << " iterations\n" << sw::to_text(m->g) << "\n" << sw::to_text(phase[1]));
      REQUIRE(w == 0);
    }
  }
  MESSAGE(Ranks << " ranks: " << accepted + by_name << " moves (" << by_name << " by name), " << kept
                << " values kept, refused: " << hazards << " hazards, " << others << " others");
  CHECK(accepted > graphs / 4);
  if (Ranks > 1) CHECK(by_name > 5);
  CHECK(hazards > graphs / 8);
  CHECK(kept > graphs / 4);
}

TEST_CASE("spmd passes: moves of random steps into the next iteration, on one rank") { check_moves<1>(); }
TEST_CASE("spmd passes: moves of random steps into the next iteration, on two ranks") { check_moves<2>(); }
TEST_CASE("spmd passes: moves of random steps into the next iteration, on four ranks") { check_moves<4>(); }

// --- constants -------------------------------------------------------------------------------------------------------

template <int Seed>
struct random_source {
  static constexpr graph value = test::random_step<capacity, body>(Seed, 2, 9, true);
};
template <class Pass, class Source, int Nodes>
using in_stages = typename Pass::template in_stages<Source, Nodes>;

template <int Seed, int Nodes>
void check_constants() {
  using source = random_source<Seed>;
  using listed = in_stages<sw::fused_optimizer, source, Nodes>;
  using fused = in_stages<fuse_in_place, listed, Nodes>;
  using bare = in_stages<sw::remove_copy_from_optimizer, fused, Nodes>;
  static_assert(!sw::verify(bare::value));
  const auto g = std::make_unique<graph>(source::value);
  CHECK(apply<sw::fused_optimizer, fuse_in_place, sw::remove_copy_from_optimizer>(*g) == "");
  CHECK(sw::to_text(bare::value) == sw::to_text(*g));
}

TEST_CASE("spmd passes: constants are rewritten as graphs made at run time, in stages of any size") {
  check_constants<4, 64>();
  check_constants<4, 500>();
  check_constants<4, 4000>();
  check_constants<10, 200>();
}

}  // namespace
