// SPDX-License-Identifier: Apache-2.0
// rematerialise: the cut is the cheapest of all, the bits are the same, and less is kept the smaller the budget.
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/framework/sequence.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <gpt.hpp>
#include <kept_bytes.hpp>
#include <random_graph.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;

template <int Ranks>
struct fibre : sw::axis<Ranks> {};
template <int Ranks>
using mesh = sw::mesh<fibre<Ranks>>;

constexpr int graph_nodes = 40, graphs = 200;
using roomy = sw::graph<3 * graph_nodes, graph_nodes>;

template <class Small>
roomy with_room(const Small& g) {
  roomy r;
  sw::copy_into(r, g);
  return r;
}

// --- the cut ---------------------------------------------------------------------------------------------------------

// What keeping the set `keep` costs, or -1 if something banned would have to be computed again.
template <class P, class Graph>
std::int64_t price(const P& p, const Graph& g, const std::vector<char>& keep) {
  std::vector<char> again(static_cast<std::size_t>(g.node_count), 0);
  std::int64_t total = 0;
  for (int i = g.node_count - 1; i >= 0; --i) {
    if (!p.member[i]) continue;
    const auto at = static_cast<std::size_t>(i);
    if (keep[at]) {
      total += p.width[i];
      continue;
    }
    if (!p.used[i] && !again[at]) continue;
    if (p.banned[i]) return -1;
    for (int k = 0; k < g.nodes[i].inputs; ++k) again[static_cast<std::size_t>(g.nodes[i].in[k])] = 1;
  }
  return total;
}

TEST_CASE("spmd passes: no set of kept values is cheaper than the cut") {
  int cuts = 0, kept = 0;
  for (std::uint64_t seed = 0; seed < 400; ++seed) {
    const auto g = test::random_graph<16>(seed, 2);
    using progress = sw::passes::solve_cut<100>::progress<16>;
    progress st;
    while (sw::passes::solve_cut<100>::solve(st, g, sw::stage_work(1))) {  // in small bites
    }
    std::vector<int> members;
    for (int i = 0; i < g.node_count; ++i)
      if (st.p.member[i] && st.p.width[i] < st.p.infinite) members.push_back(i);
    if (members.empty() || members.size() > 11) continue;
    std::vector<char> keep(static_cast<std::size_t>(g.node_count), 0);
    for (int i = 0; i < g.node_count; ++i) {
      keep[static_cast<std::size_t>(i)] = static_cast<char>(st.p.kept[i]);
      kept += st.p.kept[i];
    }
    const std::int64_t found = price(st.p, g, keep);
    REQUIRE(found >= 0);
    std::int64_t least = st.p.infinite;
    for (unsigned set = 0; set < 1U << members.size(); ++set) {
      std::fill(keep.begin(), keep.end(), 0);
      for (std::size_t k = 0; k < members.size(); ++k) keep[static_cast<std::size_t>(members[k])] = (set >> k) & 1U;
      const std::int64_t c = price(st.p, g, keep);
      if (c >= 0 && c < least) least = c;
    }
    CHECK_MESSAGE(found == least, "seed ", seed);
    ++cuts;
  }
  CHECK(cuts > 100);
  CHECK(kept > 50);
}

// --- the same bits ---------------------------------------------------------------------------------------------------

template <int Ranks, int Percent>
void check_bits() {
  int copied = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    const roomy before = with_room(test::random_graph<graph_nodes>(seed, Ranks));
    roomy after = before;
    sw::pass_sequence<roomy> passes;
    REQUIRE(passes.apply(sw::entry_of<sw::rematerialise<Percent>, roomy>(), after).text == "");
    roomy live = before;
    sw::passes::remove_dead(live);
    copied += after.node_count > live.node_count ? 1 : 0;
    std::vector<int> wrong(Ranks, 0);
    sw::launch<mesh<Ranks>>([&](auto& rank) {
      sw::eager<std::remove_reference_t<decltype(rank)>> e(rank);
      const auto want = test::run_graph(e, before);
      wrong[static_cast<std::size_t>(rank.index())] = test::run_graph(e, after) == want ? 0 : 1;
    });
    for (const int w : wrong) CHECK_MESSAGE(w == 0, "seed ", seed);
  }
  CHECK(copied > graphs / 10);
}

TEST_CASE("spmd passes: random graphs give the same bits when values are computed again") {
  check_bits<1, 100>();
  check_bits<2, 100>();
  check_bits<2, 40>();
  check_bits<2, 0>();
}

// --- whole steps -----------------------------------------------------------------------------------------------------

template <int D, int N, class Pipeline>
using step = sw::train_step<test::transformer<test::gpt::sizes>::template model,
                            test::language_task<test::gpt::sizes, test::gpt::batch, test::gpt::dp<D>>,
                            typename test::gpt::tensor_parallel<test::gpt::dp<D>, test::gpt::tp<N>>::type,
                            sw::mesh<test::gpt::dp<D>, test::gpt::tp<N>>, sw::clip_norm<sw::adamw<true>>, Pipeline, float>;

template <int D, int N>
void check_steps() {
  using plain = step<D, N, sw::pipeline<>>;
  using full = step<D, N, sw::pipeline<sw::rematerialise<>>>;
  using half = step<D, N, sw::pipeline<sw::rematerialise<50>>>;
  using none = step<D, N, sw::pipeline<sw::rematerialise<0>>>;
  static_assert(full::traffic.collectives == plain::traffic.collectives);
  constexpr std::int64_t all = test::kept_for_backward<plain>(), cut = test::kept_for_backward<full>();
  constexpr std::int64_t some = test::kept_for_backward<half>(), least = test::kept_for_backward<none>();
  static_assert(cut < all && some < cut && least < some);
  MESSAGE("bytes kept for the backward pass: ", all, ", cut ", cut, ", 50 percent ", some, ", 0 percent ", least);
  static_assert(none::program.node_count > half::program.node_count);
  static_assert(half::program.node_count > full::program.node_count);
  MESSAGE("peak bytes: ", plain::peak_bytes, ", cut ", full::peak_bytes, ", 50 percent ", half::peak_bytes, ", 0 percent ",
          none::peak_bytes);
  const auto want = test::gpt::train<plain>(3);
  auto same = [&](const auto& h) { return h.losses == want.losses && h.parameters == want.parameters; };
  CHECK(same(test::gpt::train<full>(3)));
  CHECK(same(test::gpt::train<half>(3)));
  CHECK(same(test::gpt::train<none>(3)));
}

TEST_CASE("spmd passes: a transformer trains to the same bits in less memory") {
  check_steps<1, 1>();
  check_steps<2, 2>();
}

// The result does not depend on how much one constant does.
template <class Step>
struct program_of {
  static constexpr const auto& value = Step::program;
};

TEST_CASE("spmd passes: the cut does not depend on the size of stages") {
  using source = program_of<step<2, 2, sw::pipeline<>>>;
  const auto& large = sw::rematerialise<50>::in_stages<source>::value;
  const auto& small = sw::rematerialise<50>::in_stages<source, 61>::value;
  REQUIRE(large.node_count == small.node_count);
  bool same = true;
  for (int i = 0; i < large.node_count; ++i) {
    same = same && large.nodes[i].op == small.nodes[i].op && large.nodes[i].spec == small.nodes[i].spec;
    for (int k = 0; k < sw::max_inputs; ++k) same = same && large.nodes[i].in[k] == small.nodes[i].in[k];
  }
  CHECK(same);
}

}  // namespace
