// SPDX-License-Identifier: Apache-2.0
// fuse_pointwise and fuse_kernels: the same bits on random graphs when each operation runs its own kernel, the same
// values when regions run as one; the same graph from constants in stages of any size as at run time; what is left alone.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/framework/sequence.hpp>

#include <doctest/doctest.h>

#include <cmath>
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
using graph = test::value_graph<2 * graph_nodes>;  // room for what is stored on the way

constexpr graph random_graph(std::uint64_t seed, int ranks) {
  graph g;
  copy_into(g, test::random_graph<graph_nodes>(seed, ranks));
  return g;
}

template <class Pass, class Graph>
Graph fused(const Graph& g) {
  Graph out = g;
  sw::pass_sequence<Graph> passes;
  REQUIRE(passes.apply(sw::entry_of<Pass, Graph>(), out).text == "");
  return out;
}

// --- random graphs ---------------------------------------------------------------------------------------------------

template <class Pass, int Ranks>
void check_bits() {
  int smaller = 0, before_all = 0, after_all = 0, stored = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    const graph before = random_graph(seed, Ranks);
    const graph after = fused<Pass>(before);
    const int had = sw::passes::kernel_calls(before).kernels, has = sw::passes::kernel_calls(after).kernels;
    CHECK(has <= had);
    smaller += has < had ? 1 : 0;
    before_all += had;
    after_all += has;
    for (int i = 0; i < after.node_count; ++i) stored += after.nodes[i].op == op_code::part ? 1 : 0;
    std::vector<int> wrong(Ranks, 0);
    sw::launch<mesh<Ranks>>([&](auto& rank) {
      sw::eager<std::remove_reference_t<decltype(rank)>> e(rank);
      const auto want = test::run_graph(e, before);
      wrong[static_cast<std::size_t>(rank.index())] = test::run_graph(e, after) == want ? 0 : 1;
    });
    int different = 0;
    for (const int w : wrong) different += w;
    if (different != 0) {
      INFO("seed " << seed << "\n" << sw::to_text(before) << "\n" << sw::to_text(after));
      REQUIRE(different == 0);
    }
  }
  MESSAGE(Ranks << " ranks: " << smaller << " of " << graphs << " graphs with fewer kernels, " << before_all << " -> "
                << after_all << ", " << stored << " values stored on the way");
  CHECK(smaller > graphs / 3);
  CHECK(stored > 10);
}

TEST_CASE("fusion: random graphs give the same bits with pointwise regions") {
  check_bits<sw::fuse_pointwise, 1>();
  check_bits<sw::fuse_pointwise, 2>();
}
TEST_CASE("fusion: random graphs give the same bits when regions follow other kernels") {
  check_bits<sw::fuse_kernels, 1>();
  check_bits<sw::fuse_kernels, 2>();
}

// --- constants -------------------------------------------------------------------------------------------------------

template <int Seed>
struct random_source {
  static constexpr graph value = random_graph(Seed, 2);
};
template <class Pass, int Seed, int Nodes>
std::string in_stages() {
  return sw::to_text(Pass::template in_stages<random_source<Seed>, Nodes>::value);
}
template <class Pass, int Seed>
void check_constants() {
  const std::string want = sw::to_text(fused<Pass>(random_source<Seed>::value));
  CHECK(in_stages<Pass, Seed, 1>() == want);
  CHECK(in_stages<Pass, Seed, 24>() == want);
  CHECK(in_stages<Pass, Seed, 2000>() == want);
}

using applied = sw::apply_pass<sw::fuse_kernels, random_source<3>>;
static_assert(!sw::verify(applied::value));
static_assert(!sw::can_apply<sw::fuse_kernels, applied>);
static_assert(!sw::can_apply<sw::merge_common, applied> && !sw::can_apply<sw::cancel_redistributions, applied>);

TEST_CASE("fusion: constants become what graphs made at run time become, in stages of any size") {
  check_constants<sw::fuse_pointwise, 3>();
  check_constants<sw::fuse_kernels, 3>();
  check_constants<sw::fuse_kernels, 17>();
}

// --- kernels ---------------------------------------------------------------------------------------------------------

// Broadcast operands, transposed ones, constants, a value that is needed twice, one that others need too.
struct mixture {
  constexpr auto operator()(const auto& x, const auto& bias, const auto& y) const {
    const auto pre = sw::add(x, bias);
    const auto act = sw::gelu<sw::gelu_form::tanh>(pre);
    const auto t = sw::permute<1, 0>(y);
    const auto mixed = sw::add(sw::mul(sw::scale(act, 0.25), t), sw::scale(pre, -3.0));
    return sw::add(sw::softmax(mixed), sw::mul(pre, sw::sub(sw::tanh(mixed), act)));
  }
};
template <class T, int Ranks, int Rows, class Pipeline>
using mixture_step = sw::function_step<
    mixture, mesh<Ranks>,
    sw::inputs<sw::input_tensor<T, sw::shape<Rows, 37>, sw::shard<0>>, sw::input_tensor<T, sw::shape<37>, sw::reduced>,
               sw::input_tensor<T, sw::shape<37, Rows>, sw::shard<1>>>,
    Pipeline>;

template <class Step, class T, int Ranks, int Rows>
std::vector<T> outputs_of() {
  const auto values = [](std::size_t n, int k) {
    std::vector<T> v(n);
    for (std::size_t i = 0; i < n; ++i)
      v[i] = static_cast<T>((i * 7919U + static_cast<std::size_t>(k) * 31U) % 401U) / T(100) - T(2);
    return v;
  };
  std::vector<T> all(std::size_t{Rows} * 37);
  sw::launch<mesh<Ranks>>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> program(rank, sw::executor_checks::poison);
    program.set_input(0, values(std::size_t{Rows} * 37, 1));
    program.set_input(1, values(37, 2));
    program.set_input(2, values(std::size_t{Rows} * 37, 3));
    program.run({});
    sw::runtime::store_block(program.template output<T>(0).data.data(), all.data(), program.output_layout());
  });
  return all;
}

template <class T, int Ranks, int Rows>
double worst() {
  using plain = mixture_step<T, Ranks, Rows, sw::pipeline<>>;
  using region = mixture_step<T, Ranks, Rows, sw::pipeline<sw::fuse_pointwise>>;
  static_assert(sw::passes::kernel_calls(plain::program).kernels == 11);
  static_assert(sw::passes::kernel_calls(region::program).kernels == 4);
  const std::vector<T> want = outputs_of<plain, T, Ranks, Rows>(), got = outputs_of<region, T, Ranks, Rows>();
  double most = 0;
  for (std::size_t i = 0; i < want.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(want[i]) - static_cast<double>(got[i])));
  return most;
}

TEST_CASE("fusion: a region computes what its operations do, on even, uneven and empty shards") {
  CHECK(worst<double, 1, 12>() < 1e-12);
  CHECK(worst<double, 2, 12>() < 1e-12);
  CHECK(worst<double, 3, 7>() < 1e-12);
  CHECK(worst<double, 4, 3>() < 1e-12);
  CHECK(worst<float, 2, 12>() < 1e-4);
}

// --- by hand ---------------------------------------------------------------------------------------------------------

struct maker {
  sw::graph<24, 16> g{};
  sw::builder b = g.edit();

  int leaf(op_code op, std::int64_t rows, int index = 0) {
    const std::int32_t sizes[] = {2};
    sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
    s.rank = 2;
    s.extent[0] = rows;
    s.extent[1] = 6;
    sw::make_contiguous(s);
    sw::node n = sw::empty_node;
    n.op = op;
    n.a.v[0] = index;
    n.spec = b.intern(s);
    return b.append(n);
  }
  int apply(op_code op, int x, int y = -1, double f = 0) {
    sw::node n = sw::empty_node;
    n.op = op;
    n.inputs = y < 0 ? 1 : 2;
    n.in[0] = x;
    n.in[1] = y;
    n.f = f;
    if (sw::is_update(op)) {
      n.spec = b.nodes[x].spec;
      return b.append(n);
    }
    sw::spec in[] = {b.specs[b.nodes[x].spec], b.specs[b.nodes[y < 0 ? x : y].spec]};
    const sw::outcome o = sw::infer(op, n.a, in, n.inputs);
    REQUIRE(!o.error);
    n.spec = b.intern(o.out);
    return b.append(n);
  }
  template <class... Id>
  std::string finish(Id... id) {
    g.finish(b);
    ((g.outputs[g.output_count++] = id), ...);
    CHECK(!sw::verify(g));
    auto f = fused<sw::fuse_pointwise>(g);
    std::string text;
    for (int i = 0; i < f.node_count; ++i) {
      if (!sw::runs_kernel(f.nodes[i].op)) continue;
      text += text.empty() ? "" : " ";
      text += sw::name_of(f.nodes[i].op);
      if (f.nodes[i].expression >= 0) sw::text::put_expression(text, f.expressions[f.nodes[i].expression]);
    }
    return text;
  }
};

TEST_CASE("fusion: chains, values needed elsewhere, and what stands between") {
  {
    maker m;
    const int x = m.leaf(op_code::input, 4);
    CHECK(m.finish(m.apply(op_code::tanh, m.apply(op_code::relu, m.apply(op_code::scale, x, -1, 0.5)))) ==
          "fused[scale, relu, tanh]");
  }
  {
    maker m;  // an output on the way is stored
    const int x = m.leaf(op_code::input, 4), r = m.apply(op_code::relu, x);
    CHECK(m.finish(r, m.apply(op_code::tanh, r)) == "fused[relu*, tanh]");
  }
  {
    maker m;  // the softmax needs the relu before the add may run: no cycle
    const int x = m.leaf(op_code::input, 4), r = m.apply(op_code::relu, x), s = m.apply(op_code::softmax, r);
    CHECK(m.finish(m.apply(op_code::add, r, s)) == "relu softmax add");
  }
  {
    maker m;  // a diamond is one region
    const int x = m.leaf(op_code::input, 4), r = m.apply(op_code::relu, x);
    const int t = m.apply(op_code::tanh, r), s = m.apply(op_code::scale, r, -1, 2.0);
    CHECK(m.finish(m.apply(op_code::mul, t, s)) == "fused[relu, tanh, scale, mul]");
  }
  {
    maker m;  // another iteration space
    const int x = m.leaf(op_code::input, 4), row = m.apply(op_code::relu, m.leaf(op_code::input, 1, 1));
    CHECK(m.finish(m.apply(op_code::tanh, m.apply(op_code::add, x, row))) == "relu fused[add, tanh]");
  }
  {
    maker m;  // a parameter is not read after its update
    const int w = m.leaf(op_code::param, 4), x = m.leaf(op_code::input, 4), r = m.apply(op_code::relu, w);
    m.apply(op_code::sgd, w, x);
    CHECK(m.finish(m.apply(op_code::tanh, r)) == "relu sgd tanh");
  }
}

TEST_CASE("fusion: regions stay within the limits of an expression") {
  maker m;
  int x = m.leaf(op_code::input, 4);
  for (int i = 0; i < 11; ++i) x = m.apply(i % 2 == 0 ? op_code::relu : op_code::tanh, x);
  CHECK(m.finish(x) == "fused[relu, tanh, relu, tanh, relu, tanh, relu, tanh] fused[relu, tanh, relu]");
  maker c;
  x = c.leaf(op_code::input, 4);
  for (int i = 0; i < 6; ++i) x = c.apply(op_code::scale, x, -1, 2.0);
  CHECK(c.finish(x) == "fused[scale, scale, scale, scale] fused[scale, scale]");
  maker o;
  x = o.leaf(op_code::input, 4);
  for (int i = 0; i < 7; ++i) x = o.apply(op_code::add, x, o.leaf(op_code::input, 4, i + 1));
  CHECK(o.finish(x) == "fused[add, add, add, add] fused[add, add, add]");
}

// Pairs of operations between softmaxes, all pairs different and more than a graph holds expressions.
constexpr int pairs = 30;
constexpr sw::graph<200, 8> many_expressions() {
  constexpr op_code unary[] = {op_code::relu,      op_code::tanh,       op_code::gelu_erf,
                               op_code::gelu_tanh, op_code::contiguous, op_code::scale};
  sw::graph<200, 8> g;
  sw::builder b = g.edit();
  const std::int32_t sizes[] = {2};
  sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
  s.rank = 2;
  s.extent[0] = 4;
  s.extent[1] = 6;
  sw::make_contiguous(s);
  sw::node n = sw::empty_node;
  n.spec = b.intern(s);
  int at = b.append(n);
  for (int i = 0; i < pairs; ++i)
    for (const op_code op : {unary[i % 6], unary[i / 6], op_code::softmax}) {
      n.op = op;
      n.inputs = 1;
      n.in[0] = at;
      n.f = op == op_code::scale ? 2.0 : 0.0;
      at = b.append(n);
    }
  g.finish(b);
  g.outputs[g.output_count++] = at;
  return g;
}
struct many_source {
  static constexpr auto value = many_expressions();
};

TEST_CASE("fusion: regions beyond the expressions that a graph holds stay as they were") {
  using in_constants = sw::apply_pass<sw::fuse_pointwise, many_source>;
  constexpr auto counts = sw::passes::kernel_calls(in_constants::value);
  CHECK(in_constants::value.expression_count == sw::max_expressions);
  CHECK(counts.of[static_cast<int>(op_code::fused)] == sw::max_expressions);
  CHECK(counts.kernels == pairs + sw::max_expressions + 2 * (pairs - sw::max_expressions));
  CHECK(sw::to_text(in_constants::value) == sw::to_text(fused<sw::fuse_pointwise>(many_source::value)));
}

// What the rules must refuse: an interior of other extents, a buffer that nobody writes.
TEST_CASE("fusion: the verifier knows a fused node") {
  maker m;
  const int x = m.leaf(op_code::input, 4), r = m.apply(op_code::relu, x);
  m.finish(r, m.apply(op_code::tanh, r));
  auto g = fused<sw::fuse_pointwise>(m.g);
  CHECK(!sw::verify(g));
  for (int i = 0; i < g.node_count; ++i) {
    auto broken = g;
    if (g.nodes[i].op == op_code::fused) {
      broken.expressions[0].step[1] = 0xFFU;  // no operation
      CHECK(sw::verify(broken).what == sw::problem::graph_unplaced);
      broken = g;
      broken.nodes[i].inputs = 1;  // no buffer
      CHECK(sw::verify(broken).what == sw::problem::graph_unplaced);
    } else if (g.nodes[i].op == op_code::part) {
      broken.nodes[i].in[0] = 0;
      CHECK(sw::verify(broken).what == sw::problem::graph_unplaced);
    }
  }
}

}  // namespace
