// SPDX-License-Identifier: Apache-2.0
// batch_collectives: which collectives become one; and batches under every pass: on random graphs and steps they stay whole, and
// the bits stay what they are.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/communication/batch_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/partial_lower.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

#include <doctest/doctest.h>

#include <batched.hpp>
#include <graph_maker.hpp>
#include <memory>
#include <random_step.hpp>

namespace {

namespace sw = shardwise;
using sw::op_code;

template <int Ranks>
struct fibre : sw::axis<Ranks> {};
template <int Ranks>
using mesh = sw::mesh<fibre<Ranks>>;

constexpr int body = 40, capacity = 260;
using graph = sw::graph<capacity, capacity>;

template <class Pass>
void apply(graph& g) {
  const sw::finding f = Pass::apply(g);
  REQUIRE(f.what == sw::problem::none);
}
template <class... Pass>
void in_a_row(graph& g) {
  (apply<Pass>(g), ...);
}
void neighbours(graph& g) { test::batch_neighbours(g); }

struct variant {
  const char* name;
  void (*make)(graph&);
  bool keeps_nodes = true;
};
using overlap = sw::reorder_compute_for_overlap<>;
constexpr variant variants[] = {
    {"batched", &in_a_row<sw::batch_collectives>},
    {"neighbours", &neighbours},
    {"schedule_comm_wait", &in_a_row<sw::batch_collectives, sw::schedule_comm_wait>},
    {"sink_waits", &in_a_row<sw::batch_collectives, sw::sink_waits>},
    {"raise_comms", &in_a_row<sw::batch_collectives, sw::raise_comms>},
    {"expedite_comms", &in_a_row<sw::batch_collectives, sw::expedite_comms>},
    {"reorder_compute_for_overlap", &in_a_row<sw::batch_collectives, overlap>},
    {"all of them", &in_a_row<sw::batch_collectives, sw::expedite_comms, overlap, sw::sink_waits, sw::raise_comms>},
    {"batched twice", &in_a_row<sw::batch_collectives, sw::sink_waits, sw::batch_collectives>},
    {"merge_common", &in_a_row<sw::batch_collectives, sw::merge_common>, false},
    {"cancel_redistributions", &in_a_row<sw::batch_collectives, sw::cancel_redistributions, sw::merge_common>, false},
    {"fused_optimizer", &in_a_row<sw::batch_collectives, sw::fused_optimizer>, false},
    {"foreach_optimizer", &in_a_row<sw::batch_collectives, sw::foreach_optimizer>, false},
    {"rematerialise", &in_a_row<sw::batch_collectives, sw::rematerialise<0>>, false},
};
constexpr int variant_count = static_cast<int>(sizeof(variants) / sizeof(variants[0]));

sw::step_env numbers(int k) {
  sw::step_env env;
  env.step = k + 1;
  env.lr = 0.01;
  env.momentum = 0.9;
  return env;
}
struct outcome_bits {
  std::vector<std::vector<std::uint32_t>> outputs;
  std::map<std::pair<int, int>, std::vector<std::uint32_t>> leaves;
  bool operator==(const outcome_bits&) const = default;
};
template <class Rank>
outcome_bits run_steps(Rank& rank, const graph& g) {
  using runner_type = test::graph_runner<Rank, graph>;
  runner_type runner(rank, g, runner_type::workspace_of(g));
  runner.start();
  for (int k = 0; k < 2; ++k) {
    runner.feed(k);
    runner.run(numbers(k));
  }
  return {runner.outputs(), runner.leaves()};
}

template <int Ranks>
void check_variants(int graphs) {
  int batched[variant_count]{}, members[variant_count]{};
  for (int seed = 0; seed < graphs; ++seed) {
    const auto before = std::make_unique<graph>();
    sw::copy_into(*before, test::random_step<160, body>(static_cast<std::uint64_t>(seed), Ranks, 6, seed % 2 == 0));
    sw::passes::remove_dead(*before);
    REQUIRE(!sw::verify(*before));
    std::vector<std::unique_ptr<graph>> after;
    for (int v = 0; v < variant_count; ++v) {
      after.push_back(std::make_unique<graph>(*before));
      graph& g = *after.back();
      variants[v].make(g);
      INFO("seed " << seed << ", " << std::string(variants[v].name) << "\n"
                   << sw::to_text(*before) << "\n"
                   << sw::to_text(g));
      const sw::finding f = sw::verify(g);
      REQUIRE(f.what == sw::problem::none);
      if (variants[v].keeps_nodes) REQUIRE(test::computed(g) == test::computed(*before));
      for (const test::batch_at b : test::batches_of(g)) {
        batched[v] += b.members > 1 ? 1 : 0;
        members[v] += b.members;
      }
    }
    std::vector<int> wrong(static_cast<std::size_t>(Ranks), -1);
    sw::launch<mesh<Ranks>>([&](auto& rank) {
      const outcome_bits want = run_steps(rank, *before);
      for (int v = 0; v < variant_count; ++v)
        if (!(run_steps(rank, *after[static_cast<std::size_t>(v)]) == want))
          wrong[static_cast<std::size_t>(rank.index())] = v;
    });
    for (const int v : wrong) {
      if (v < 0) continue;
      INFO("seed " << seed << ", " << std::string(variants[v].name) << "\n"
                   << sw::to_text(*before) << "\n"
                   << sw::to_text(*after[static_cast<std::size_t>(v)]));
      REQUIRE(v < 0);
    }
  }
  for (int v = 0; v < variant_count; ++v)
    MESSAGE(Ranks << " ranks, " << std::string(variants[v].name) << ": " << batched[v] << " batches of " << members[v]);
  if (Ranks > 1)
    for (int v = 0; v < variant_count; ++v) CHECK(batched[v] > 2);
}

TEST_CASE("batches: random steps give the same bits after every pass, on one rank") { check_variants<1>(10); }
TEST_CASE("batches: random steps give the same bits after every pass, on two ranks") { check_variants<2>(100); }
TEST_CASE("batches: random steps give the same bits after every pass, on three ranks") { check_variants<3>(100); }
TEST_CASE("batches: random steps give the same bits after every pass, on four ranks") { check_variants<4>(60); }

// --- behind fusing passes --------------------------------------------------------------------------------------------

std::vector<int> sizes_of_batches(const auto& g) {
  std::vector<int> all;
  for (const test::batch_at b : test::batches_of(g)) all.push_back(b.members);
  return all;
}

struct single : sw::axis<1> {};

template <int Ranks>
void check_fused(std::uint64_t graphs) {
  using graph = sw::graph<220, 220, 64>;
  int batches = 0, fused = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    graph before = test::with_views<graph>(test::random_graph<body>(seed, Ranks), seed);
    REQUIRE(!sw::verify(before));
    graph batched = before;
    REQUIRE(!sw::batch_collectives::apply(batched));
    const auto whole = sizes_of_batches(batched);
    batches += static_cast<int>(whole.size());
    const auto check = [&](const char* name, auto pass, bool keeps) {
      graph after = batched;
      REQUIRE(!decltype(pass)::apply(after));
      INFO("seed " << seed << ", " << std::string(name) << "\n" << sw::to_text(batched) << "\n" << sw::to_text(after));
      REQUIRE(sw::verify(after).what == sw::problem::none);
      if (keeps) REQUIRE(sizes_of_batches(after) == whole);
      fused += after.node_count < batched.node_count ? 1 : 0;
      std::vector<int> wrong(Ranks, 0);
      sw::launch<sw::mesh<fibre<Ranks>, single>>([&](auto& rank) {
        sw::eager<std::remove_reference_t<decltype(rank)>> e(rank);
        wrong[static_cast<std::size_t>(rank.index())] = test::run_graph(e, after) == test::run_graph(e, before) ? 0 : 1;
      });
      for (const int w : wrong) REQUIRE(w == 0);
    };
    check("fuse_pointwise", sw::fuse_pointwise{}, true);
    check("fuse_kernels", sw::fuse_kernels{}, true);
    check("partial_lower", sw::partial_lower<sw::core_operations, 2>{}, false);
  }
  MESSAGE(Ranks << " ranks: " << batches << " batches, " << fused << " graphs with fewer nodes");
  CHECK(batches > static_cast<int>(graphs) / 4);
  CHECK(fused > static_cast<int>(graphs) / 4);
}

TEST_CASE(
    "batches: fused kernels and what they see on an axis of one rank stand beside batches, and the bits are the same") {
  check_fused<2>(100);
  check_fused<3>(60);
}

// What a fused region steps over is written where it is read: before the batch, though its second member alone reads it.
TEST_CASE("batches: the operand of a later member, seen on an axis of one rank") {
  test::graph_maker<24> m;
  const int x = m.leaf(op_code::input, sw::partial_value(), 0), y = m.leaf(op_code::input, sw::partial_value(), 1);
  const int first = m.to(x, sw::replicate_value()), second = m.to(y, sw::replicate_value());
  const auto two = m.finish(first, second);
  int later_alone = 0;
  for (std::uint64_t seed = 0; seed < 8; ++seed) {
    auto g = test::with_views<sw::graph<24, 24>>(two, seed);
    REQUIRE(!sw::batch_collectives::apply(g));
    const auto seen = [&](int k) { return g.nodes[g.nodes[g.outputs[k]].in[0]].op == op_code::redistribute; };
    later_alone += seen(1) && !seen(0) ? 1 : 0;
    REQUIRE(!sw::fuse_pointwise::apply(g));
    INFO(sw::to_text(g));
    CHECK(!sw::verify(g));
    CHECK(sizes_of_batches(g) == std::vector<int>{2});
  }
  CHECK(later_alone > 0);
}

// An update that a list has put off is written where one reads what it writes: before the batch, too.
TEST_CASE("batches: the second member reads an updated parameter") {
  const auto check = [](auto pass) {
    test::graph_maker<48> m;
    const auto state = [&](int which) {
      const int s = m.leaf(op_code::state, sw::shard_value(0), which);
      m.b.nodes[s].a.v[2] = which;
      return s;
    };
    const int kept = m.leaf(op_code::param, sw::shard_value(0), 0), updated = m.leaf(op_code::param, sw::shard_value(0), 1);
    const int gradient = m.leaf(op_code::input, sw::shard_value(0)), moments[] = {state(0), state(1)};
    const int after = m.apply(op_code::adam, {}, {updated, m.apply(op_code::tanh, gradient), moments[0], moments[1]});
    const int first = m.to(kept, sw::replicate_value()), second = m.to(after, sw::replicate_value());
    auto g = m.finish(first, second);
    REQUIRE(!sw::verify(g));
    REQUIRE(!sw::batch_collectives::apply(g));
    CHECK(sizes_of_batches(g) == std::vector<int>{2});
    REQUIRE(!decltype(pass)::apply(g));
    INFO(sw::to_text(g));
    CHECK(!sw::verify(g));
    CHECK(sizes_of_batches(g) == std::vector<int>{2});
  };
  check(sw::fused_optimizer{});
  check(sw::foreach_optimizer{});
}

// --- which ----------------------------------------------------------------------------------------------------------

using step = test::sharded_step<capacity>;

graph of(const step& s) {
  graph g;
  sw::copy_into(g, s.g);
  return g;
}

TEST_CASE("batches: a group's gathers are one collective, and so are its gradients' scattered sums") {
  for (const int members : {2, 3, 5}) {
    const step s(2, 3, members);
    graph g = of(s);
    REQUIRE(!sw::verify(g));
    CHECK(sw::passes::order_of(g).collectives == 9 * members);
    apply<sw::batch_collectives>(g);
    REQUIRE(!sw::verify(g));
    CHECK(sw::passes::order_of(g).collectives == 9);
    for (const test::batch_at b : test::batches_of(g)) CHECK(b.members == members);
    CHECK(test::batches_of(g).size() == 9);
    CHECK(test::computed(g) == test::computed(of(s)));
  }
  const step single(2, 3, 1);
  graph g = of(single);
  apply<sw::batch_collectives>(g);
  CHECK(test::batches_of(g).empty());
  CHECK(sw::to_text(g) == sw::to_text(of(single)));
}

TEST_CASE("batches: other modules, and what stands on the other side of a kernel, are others") {
  step s(2, 3, 4);
  graph g = of(s);
  for (const auto& group : s.gathers) g.nodes[group[2]].scope = 9;  // in the middle: the others are neighbours still
  apply<sw::batch_collectives>(g);
  REQUIRE(!sw::verify(g));
  int threes = 0;
  for (const test::batch_at b : test::batches_of(g)) threes += b.members == 3 ? 1 : 0;
  CHECK(threes == 3);
}

// A member that is computed where a list lies writes there, and does not wait for itself.
TEST_CASE("batches: a member whose result lies in a pack") {
  test::graph_maker<24> m;
  const int x = m.leaf(op_code::input, sw::partial_value(), 0), y = m.leaf(op_code::input, sw::partial_value(), 1);
  const int first = m.to(x, sw::replicate_value()), second = m.to(y, sw::replicate_value());
  sw::slot_table<24> slots;
  slots.clear();
  std::int64_t within[1]{};
  const int list = sw::emit_pack(m.b, slots, &first, 1, false, -1, within);
  auto g = m.finish(list, m.apply(op_code::tanh, second));
  REQUIRE(!sw::verify(g));
  const auto before = test::computed(g);
  REQUIRE(sw::batch_collectives::apply(g).what == sw::problem::none);
  CHECK(!sw::verify(g));
  CHECK(test::computed(g) == before);
  CHECK(test::batches_of(g) == std::vector<test::batch_at>{{2, 2}});
}

TEST_CASE("batches: steps of sharded groups keep their bits, with empty shards") {
  const auto check = [](auto ranks) {
    constexpr int n = decltype(ranks)::value;
    for (const bool regather : {false, true}) {
      const step s(n, 3, 3, regather);
      graph before = of(s), after = before, moved = before;
      apply<sw::batch_collectives>(after);
      in_a_row<sw::batch_collectives, sw::expedite_comms, overlap, sw::sink_waits, sw::raise_comms>(moved);
      REQUIRE(!sw::verify(after));
      REQUIRE(!sw::verify(moved));
      std::vector<int> wrong(n, 0);
      sw::launch<mesh<n>>([&](auto& rank) {
        const outcome_bits want = run_steps(rank, before);
        rank.reset_counts();
        const bool same = run_steps(rank, after) == want;
        const auto sent = rank.bytes_written(0);
        rank.reset_counts();
        const bool again = run_steps(rank, moved) == want;
        const int* const c = rank.coordinate().data();
        const auto t = sw::passes::traffic_of<100>(before);
        rank.barrier();  // others count what they fetch from this one
        const bool counted = sent == 2 * sw::passes::sent_bytes(before, t, 0, c) && rank.bytes_written(0) == sent;
        wrong[static_cast<std::size_t>(rank.index())] = same && again && counted ? 0 : 1;
      });
      for (const int w : wrong) CHECK(w == 0);
    }
  };
  check(std::integral_constant<int, 1>{});
  check(std::integral_constant<int, 2>{});
  check(std::integral_constant<int, 3>{});
  check(std::integral_constant<int, 4>{});
  check(std::integral_constant<int, 8>{});
}

}  // namespace
