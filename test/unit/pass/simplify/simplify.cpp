// SPDX-License-Identifier: Apache-2.0
// cancel_redistributions and merge_common: the same bits on random graphs, run on 1 and 2 ranks; the same graph from
// constants in stages of any size as at run time; and what they must leave alone.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/framework/sequence.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

#include <doctest/doctest.h>

#include <graph_maker.hpp>
#include <random_graph.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;

template <int Ranks>
struct fibre : sw::axis<Ranks> {};
template <int Ranks>
using mesh = sw::mesh<fibre<Ranks>>;

constexpr int graph_nodes = 40, graphs = 200;
using graph = test::value_graph<graph_nodes>;

template <class Graph>
Graph simplified(const Graph& g) {
  Graph out = g;
  sw::pass_sequence<Graph> passes;
  REQUIRE(passes.apply(sw::entry_of<sw::cancel_redistributions, Graph>(), out).text == "");
  REQUIRE(passes.apply(sw::entry_of<sw::merge_common, Graph>(), out).text == "");
  return out;
}

template <int Ranks>
void check_bits() {
  int smaller = 0, fewer = 0, collectives = 0, different = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    const graph before = test::random_graph<graph_nodes>(seed, Ranks);
    REQUIRE(!sw::verify(before));
    graph live = before;
    sw::passes::remove_dead(live);
    const graph after = simplified(before);
    const int had = sw::passes::order_of(live).collectives, has = sw::passes::order_of(after).collectives;
    CHECK(has <= had);
    smaller += after.node_count < live.node_count ? 1 : 0;
    fewer += has < had ? 1 : 0;
    collectives += had;
    std::vector<int> wrong(Ranks, 0);
    sw::launch<mesh<Ranks>>([&](auto& rank) {
      sw::eager<std::remove_reference_t<decltype(rank)>> e(rank);
      const auto want = test::run_graph(e, before);
      wrong[static_cast<std::size_t>(rank.index())] = test::run_graph(e, after) == want ? 0 : 1;
    });
    for (const int w : wrong) different += w;
    if (different != 0) {
      INFO("seed " << seed << "\n" << sw::to_text(before) << "\n" << sw::to_text(after));
      REQUIRE(different == 0);
    }
  }
  MESSAGE(Ranks << " ranks: " << smaller << " of " << graphs << " graphs smaller, " << fewer << " with fewer of "
                << collectives << " collectives");
  CHECK(smaller > graphs / 2);
  if (Ranks > 1) CHECK(fewer > graphs / 8);
}

TEST_CASE("spmd passes: random graphs on one rank give the same bits when simplified") { check_bits<1>(); }
TEST_CASE("spmd passes: random graphs on two ranks give the same bits when simplified") { check_bits<2>(); }

// --- constants -------------------------------------------------------------------------------------------------------

template <int Seed>
struct random_source {
  static constexpr graph value = test::random_graph<graph_nodes>(Seed, 2);
};

template <class Pass, class Source, int Nodes>
using in_stages = typename Pass::template in_stages<Source, Nodes>;

template <int Seed, int Nodes>
void check_constants() {
  using source = random_source<Seed>;
  using cancelled = in_stages<sw::cancel_redistributions, source, Nodes>;
  using merged = in_stages<sw::merge_common, cancelled, Nodes>;
  CHECK(sw::to_text(merged::value) == sw::to_text(simplified(source::value)));
}

using both = sw::apply_pass<sw::merge_common, sw::apply_pass<sw::cancel_redistributions, random_source<3>>>;
static_assert(both::value.node_count < graph_nodes && !sw::verify(both::value));
static_assert(!sw::can_apply<sw::cancel_redistributions, sw::apply_pass<sw::merge_common, random_source<3>>>);

TEST_CASE("spmd passes: constants are simplified as graphs made at run time, in stages of any size") {
  check_constants<3, 1>();
  check_constants<3, 16>();
  check_constants<3, 64>();
  check_constants<3, 2000>();
  check_constants<11, 24>();
  CHECK(sw::to_text(both::value) == sw::to_text(simplified(random_source<3>::value)));
}

// --- in a step -------------------------------------------------------------------------------------------------------

struct detour {
  constexpr auto operator()(const auto& x) const {
    using axis = fibre<2>;
    const auto there = sw::redistribute<axis, sw::shard<0>>(sw::relu(x));
    const auto back = sw::redistribute<axis, sw::replicate>(there);
    return sw::add(sw::tanh(back), sw::tanh(sw::relu(x)));
  }
};
template <class Pipeline>
using detour_step = sw::function_step<detour, mesh<2>, sw::inputs<sw::input_tensor<float, sw::shape<5, 6>>>, Pipeline>;
using as_written = detour_step<sw::pipeline<>>;
using simplified_step = detour_step<sw::pipeline<sw::cancel_redistributions, sw::merge_common>>;
static_assert(as_written::comm_bytes<fibre<2>> > 0 && simplified_step::comm_bytes<fibre<2>> == 0);
static_assert(as_written::program.node_count == 8 && simplified_step::program.node_count == 4);  // input, relu, tanh, add
static_assert(simplified_step::peak_bytes < as_written::peak_bytes);

template <class Step>
std::vector<float> outputs_of() {
  std::vector<float> all[2];
  sw::launch<mesh<2>>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> program(rank, sw::executor_checks::poison);
    auto in = program.template input<float>(0);
    for (std::size_t i = 0; i < in.size(); ++i) in[i] = static_cast<float>(i % 7) - 3.0F;
    program.run({});
    const auto block = program.template output<float>(0);
    all[rank.index()].assign(block.data.begin(), block.data.end());
  });
  CHECK(all[0] == all[1]);
  return all[0];
}

TEST_CASE("spmd passes: a step with a pipeline computes what it computes without") {
  const std::vector<float> want = outputs_of<as_written>();
  CHECK(want.size() == 30);
  CHECK(outputs_of<simplified_step>() == want);
}

// --- by hand ---------------------------------------------------------------------------------------------------------

using maker = test::graph_maker<16>;
constexpr sw::placement R = sw::replicate_value(), U = sw::reduced_value(), P = sw::partial_value();
constexpr sw::placement S0 = sw::shard_value(0), S1 = sw::shard_value(1);

// What remains of a chain of placements: its text without the leaf and the return.
std::string chain(std::initializer_list<sw::placement> places) {
  maker m;
  int at = -1;
  for (const sw::placement& p : places) at = at < 0 ? m.leaf(op_code::input, p) : m.to(at, p);
  auto g = m.finish(at);
  sw::cancel_redistributions::apply(g);
  CHECK(!sw::verify(g));
  std::string kinds;
  for (int i = 1; i < g.node_count; ++i) {
    kinds += i > 1 ? " " : "";
    kinds += sw::detail::base_name(g, sw::detail::base_of(g, i));
  }
  return kinds;
}

TEST_CASE("spmd passes: chains of redistributions") {
  CHECK(chain({R, S0, R}) == "");
  CHECK(chain({S0, R, S0}) == "");
  CHECK(chain({S0, S1, S0}) == "");
  CHECK(chain({R, U, R}) == "");
  CHECK(chain({R, S0, U}) == "redistribute");  // a change of name
  CHECK(chain({S0, R, S1}) == "all_to_all");   // not a gather
  CHECK(chain({S0, S1, R}) == "all_gather");
  CHECK(chain({R, S0, S1}) == "redistribute");  // takes the other chunk
  CHECK(chain({S0, R, S1, R, S0}) == "");
  CHECK(chain({P, R, U}) == "all_reduce");
  CHECK(chain({U, R, P}) == "redistribute");
  // not the same bits: signed zeros, other summands, another order
  CHECK(chain({R, P, R}) == "redistribute all_reduce");
  CHECK(chain({S0, P, S0}) == "redistribute reduce_scatter");
  CHECK(chain({P, R, P}) == "all_reduce redistribute");
  CHECK(chain({P, R, S0}) == "all_reduce redistribute");
  CHECK(chain({P, S0, R}) == "reduce_scatter all_gather");
}

// A pack says where its operands are computed, so nothing that lies elsewhere may stand for them: the way back to a parameter
// stays, and of two equal values each has its slot.
TEST_CASE("spmd passes: what a pack places is not replaced") {
  maker m;
  const int w = m.leaf(op_code::param, sw::replicate_value());
  const int there = m.to(w, sw::shard_value(0)), back = m.to(there, sw::replicate_value());
  const int x = m.apply(op_code::relu, w), y = m.apply(op_code::relu, w);
  sw::spec flat = m.b.specs[m.b.nodes[w].spec];
  flat.rank = 1;
  flat.extent[0] = 3 * 32;  // each 24 elements take 128 bytes
  flat.extent[1] = flat.stride[1] = 0;
  sw::make_contiguous(flat);
  sw::node n = sw::empty_node;
  n.op = op_code::pack;
  for (const int k : {back, x, y}) n.in[n.inputs++] = k;
  n.spec = m.b.intern(flat);
  const auto g = m.finish(m.b.append(n));
  REQUIRE(!sw::verify(g));
  const auto after = simplified(g);
  CHECK(!sw::verify(after));
  CHECK(after.node_count == g.node_count);
}

TEST_CASE("spmd passes: a middle that others need is not bypassed by another collective") {
  maker m;
  const int x = m.leaf(op_code::input, S0);
  const int whole = m.to(x, R);
  const int part = m.to(whole, S1);
  auto g = m.finish(m.apply(op_code::relu, whole), part);
  sw::cancel_redistributions::apply(g);
  CHECK(sw::passes::order_of(g).collectives == 1);
  CHECK(g.node_count == 4);
}

// A value that comes back to a parameter's own storage may not be read after the parameter is updated.
int nodes_after(bool read_late, op_code leaf) {
  maker m;
  const int w = m.leaf(leaf, R);
  const int grad = m.leaf(op_code::input, R);
  const int back = m.to(m.to(w, S0), R);
  const int early = m.apply(op_code::relu, back);
  m.apply(op_code::sgd, m.leaf(op_code::param, R, 1), grad);
  auto g = m.finish(read_late ? m.apply(op_code::tanh, back) : early);
  sw::cancel_redistributions::apply(g);
  return g.node_count;
}

TEST_CASE("spmd passes: a parameter's copy outlives its update") {
  CHECK(nodes_after(false, op_code::param) == 5);  // two parameters, the gradient, relu, sgd
  CHECK(nodes_after(true, op_code::param) == 7);   // with both redistributions
  CHECK(nodes_after(true, op_code::input) == 5);   // an input is not updated
}

TEST_CASE("spmd passes: what is merged") {
  maker m;
  const int w = m.leaf(op_code::param, R), x = m.leaf(op_code::input, R);
  const int a = m.apply(op_code::relu, w), b = m.apply(op_code::relu, w);
  const int sum = m.apply(op_code::add, a, b);
  m.apply(op_code::sgd, w, x);
  const int late = m.apply(op_code::relu, w), again = m.apply(op_code::relu, w);
  auto g = m.finish(sum, late, again);
  sw::merge_common::apply(g);
  CHECK(!sw::verify(g));
  CHECK(sw::to_text(g) ==
        "%param = param() (4, 6) [replicate]\n"
        "%input = input() (4, 6) [replicate]\n"
        "%relu = relu(%param) (4, 6) [replicate]\n"
        "%add = add(%relu, %relu) (4, 6) [replicate]\n"
        "%sgd = sgd(%param, %input) (4, 6) [replicate]\n"
        "%relu_1 = relu(%param) (4, 6) [replicate]\n"
        "return %add\nreturn %relu_1\nreturn %relu_1\n");
}

TEST_CASE("spmd passes: what is not merged") {
  maker m;
  const int x = m.leaf(op_code::input, R), y = m.leaf(op_code::input, R);  // leaves are the caller's, equal or not
  const int ids[] = {m.apply(op_code::dropout, x), m.apply(op_code::dropout, x), m.apply(op_code::scale, x),
                     m.apply(op_code::scale, x), m.apply(op_code::relu, y)};
  m.b.nodes[ids[2]].f = 0.0;
  m.b.nodes[ids[3]].f = -0.0;
  auto g = m.finish(ids[0], ids[1], ids[2], ids[3], ids[4]);
  sw::merge_common::apply(g);
  CHECK(g.node_count == 7);
}

}  // namespace
