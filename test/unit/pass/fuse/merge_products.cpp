// SPDX-License-Identifier: Apache-2.0
// merge_products on 200 random graphs of products, their gradients and updates, on 1 to 4 ranks: the same values; the same
// bits where nothing is added up in another order. What must not be merged is left alone; mutated graphs are refused.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/framework/sequence.hpp>

#include <doctest/doctest.h>

#include <bit>
#include <cmath>
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

constexpr int capacity = 420, graphs = 200;
using graph = sw::graph<capacity, capacity>;

// Values (batch, rows, 16), weights (16, 16), biases (16).
struct maker {
  graph& g;
  sw::builder b;
  int ranks;
  sw::dtype type = sw::dtype::f64;
  int leaves[3] = {0, 0, 0};  // inputs, parameters, states

  maker(graph& to, int ranks_) : g(to), b(to.edit()), ranks(ranks_) {}

  int leaf(op_code op, std::initializer_list<std::int64_t> extents, sw::placement place, int parameter = 0) {
    const std::int32_t sizes[] = {ranks};
    sw::spec s = sw::empty_spec(type, 1, sizes, sw::device_kind::host);
    for (const std::int64_t e : extents) s.extent[s.rank++] = e;
    sw::make_contiguous(s);
    s.place[0] = place;
    sw::node n = sw::empty_node;
    n.op = op;
    n.a.v[0] = leaves[op == op_code::input ? 0 : op == op_code::param ? 1 : 2]++;
    n.a.v[1] = parameter;
    n.spec = b.intern(s);
    return b.append(n);
  }
  // -1 where no rule admits it.
  int apply(op_code op, const sw::op_attr& a, double f, int x, int y = -1) {
    if (x < 0) return -1;
    sw::node n = sw::empty_node;
    n.op = op;
    n.a = a;
    n.f = f;
    n.inputs = y < 0 ? 1 : 2;
    n.in[0] = x;
    n.in[1] = y;
    const sw::spec in[] = {b.specs[b.nodes[x].spec], b.specs[b.nodes[y < 0 ? x : y].spec]};
    const sw::outcome o = sw::infer(op, a, in, n.inputs);
    if (o.error) return -1;
    n.spec = b.intern(o.out);
    return b.append(n);
  }
  int project(int x, int w) { return apply(op_code::einsum, {{0x214, 0x23, 0x314, 0, 0, 0}}, 0.125, x, w); }
  int back(int d, int w) { return apply(op_code::einsum, {{0x314, 0x23, 0x214, 0, 0, 0}}, 0.125, d, w); }
  int weigh(int d, int x) { return apply(op_code::einsum, {{0x314, 0x214, 0x23, 0, 0, 0}}, 0.125, d, x); }
  int rows(int d) { return apply(op_code::sum, {{3, 0, 0, 0, 0, 0}}, 0, d); }
  int add(int x, int y) { return apply(op_code::add, {}, 0, x, y); }
  int tanh(int x) { return apply(op_code::tanh, {}, 0, x); }
  int cast(int x, sw::dtype to) {
    return apply(op_code::cast, sw::attributes<sw::cast_attributes>(static_cast<int>(to)), 0, x);
  }
  void update(int p, int d) {
    sw::node n = sw::empty_node;
    n.op = op_code::sgd;
    n.f = 1;
    n.a.v[1] = 1;
    n.spec = b.nodes[p].spec;
    n.in[n.inputs++] = p;
    n.in[n.inputs++] = d;
    const int m = leaf(op_code::state, {}, sw::replicate_value(), static_cast<int>(b.nodes[p].a.v[0]));
    b.nodes[m].spec = b.nodes[p].spec;
    n.in[n.inputs++] = m;
    b.append(n);
  }
  void output(int id) { g.outputs[g.output_count++] = id; }
  void finish() {
    g.finish(b);
    REQUIRE(!sw::verify(g));
  }
};

// Through casts: weights and biases are read through casts, which are made where they are first needed, and some again after an
// update; gradients are cast at once. To their own type, so that the interpreter follows.
void random_products(graph& g, std::uint64_t seed, int ranks, bool through_casts = false) {
  test::dice roll{seed};
  maker m(g, ranks);
  const sw::placement places[] = {sw::reduced_value(), sw::shard_value(0), sw::reduced_value(), sw::shard_value(1)};
  const std::int64_t batch = roll(4) == 0 ? 6 : 4, rows = roll(3) == 0 ? 3 : 4;
  std::vector<int> values, weights, biases;
  for (int i = 0; i < 2; ++i) values.push_back(m.leaf(op_code::input, {batch, rows, 16}, places[roll(2)]));
  const sw::placement split = places[roll(4)];
  for (int i = 0; i < 5; ++i) weights.push_back(m.leaf(op_code::param, {16, 16}, roll(5) == 0 ? places[roll(4)] : split));
  for (int i = 0; i < 5; ++i)
    biases.push_back(m.leaf(op_code::param, {16}, split.is_shard(0) ? split : sw::reduced_value()));
  const auto any = [&roll](const std::vector<int>& v) {
    return v[static_cast<std::size_t>(roll(static_cast<int>(v.size())))];
  };
  const auto keep = [&values](int id) {
    if (id >= 0) values.push_back(id);
    return id;
  };
  std::vector<int> gradients, cast_of(static_cast<std::size_t>(m.b.node_count), -1);
  const auto leaf = [&](int p) {
    if (!through_casts) return p;
    int& known = cast_of[static_cast<std::size_t>(p)];
    return known = known >= 0 ? known : m.cast(p, sw::dtype::f64);
  };
  const auto gradient = [&](int d) {
    if (d >= 0) gradients.push_back(through_casts && roll(4) != 0 ? m.cast(d, sw::dtype::f64) : d);
  };
  int updates = 0;
  for (int attempt = 0; attempt < 60 && m.b.node_count < 110; ++attempt) {
    const int kind = roll(10);
    if (kind < 3) {  // projections of one value, some with biases
      const int x = any(values), first = roll(5), count = 2 + roll(3);
      const bool biased = roll(2) == 0;
      for (int k = 0; k < count; ++k) {
        const std::size_t at = static_cast<std::size_t>((first + k) % 5);
        const int y = m.project(x, leaf(weights[at]));
        keep(biased && y >= 0 ? m.add(y, leaf(biases[at])) : y);
        if (roll(6) == 0) keep(m.tanh(any(values)));
      }
    } else if (kind < 6) {  // their adjoints: gradients, row sums, what goes back
      const int x = any(values), first = roll(5), count = 2 + roll(2);
      int total = -1;
      for (int k = 0; k < count; ++k) {
        const int d = any(values);
        if (roll(2) == 0) gradient(m.rows(d));
        gradient(m.weigh(d, x));
        const int back = m.back(d, leaf(weights[static_cast<std::size_t>((first + k) % 5)]));
        total = total < 0 || back < 0 ? (back < 0 ? total : back) : m.add(total, back);
      }
      keep(total);
    } else if (kind == 6) {
      keep(m.apply(op_code::mul, {}, 0, any(values), any(values)));
    } else if (kind == 7) {
      keep(m.apply(op_code::redistribute,
                   {{0, sw::pack(roll(2) == 0 ? sw::reduced_value() : sw::shard_value(roll(3))), 0, 0, 0, 0}}, 0,
                   any(values)));
    } else if (kind == 8 && !gradients.empty() && updates < 4) {
      int d = any(gradients);
      const int p = any(weights);
      if (d >= 0 && m.b.specs[m.b.nodes[d].spec].rank == 2) {
        d = m.b.specs[m.b.nodes[d].spec].place[0] == m.b.specs[m.b.nodes[p].spec].place[0]
                ? d
                : m.apply(op_code::redistribute, {{0, sw::pack(m.b.specs[m.b.nodes[p].spec].place[0]), 0, 0, 0, 0}}, 0, d);
        if (d >= 0) {
          m.update(p, d);
          ++updates;
          if (through_casts && roll(3) != 0)
            cast_of[static_cast<std::size_t>(p)] = -1;  // else what was cast before is read on
        }
      }
    } else {
      keep(m.tanh(any(values)));
    }
  }
  m.output(values.back());
  for (int k = 0; k < 3; ++k) m.output(any(values));
  for (int k = 0; k < 4; ++k)
    if (const int d = gradients.empty() ? -1 : any(gradients); d >= 0) m.output(d);
  m.finish();
  sw::passes::remove_dead(g);
}

template <class... P>
std::string run_passes(graph& g) {
  sw::pass_sequence<graph> passes;
  std::string text;
  const auto one = [&](const auto& entry) {
    if (text.empty()) text = passes.apply(entry, g).text;
  };
  (one(sw::entry_of<P, graph>()), ...);
  return text;
}

template <class Graph>
int count_of(const Graph& g, op_code op) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += g.nodes[i].op == op ? 1 : 0;
  return n;
}
// Products whose terms are contracted with each other.
int added_up(const graph& g) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& x = g.nodes[i];
    n += x.op == op_code::einsum && (x.a.v[0] & 15) == 15 && (x.a.v[2] & 15) != 15 ? 1 : 0;
  }
  return n;
}

struct results {
  std::vector<std::vector<std::uint64_t>> outputs;
  std::map<std::pair<int, int>, std::vector<std::uint64_t>> leaves;
};
template <class Rank>
results run_graph(Rank& rank, const graph& g) {
  using runner = test::graph_runner<Rank, graph, double>;
  runner r(rank, g, runner::workspace_of(g));
  sw::step_env env;
  env.lr = 0.01;
  env.momentum = 0.9;
  r.start();
  for (int k = 0; k < 2; ++k) {
    r.feed(k);
    env.step = k + 1;
    r.run(env);
  }
  return {r.outputs(), r.leaves()};
}
double distance(const std::vector<std::uint64_t>& a, const std::vector<std::uint64_t>& b) {
  if (a.size() != b.size()) return 1;
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i]) continue;
    const double x = std::bit_cast<double>(a[i]), y = std::bit_cast<double>(b[i]);
    const double d = std::abs(x - y) / (1 + std::abs(x));
    most = d >= most ? d : d == d ? most : 1;
  }
  return most;
}
double distance(const results& a, const results& b) {
  double most = a.outputs.size() == b.outputs.size() && a.leaves.size() == b.leaves.size() ? 0 : 1;
  for (std::size_t k = 0; most < 1 && k < a.outputs.size(); ++k) most = std::max(most, distance(a.outputs[k], b.outputs[k]));
  for (const auto& [key, bits] : a.leaves) most = std::max(most, distance(bits, b.leaves.at(key)));
  return most;
}

template <int Ranks, bool Casts = false>
void check_values() {
  int merged = 0, exact = 0, sums = 0, before_all = 0, after_all = 0, worse = 0, fused_before = 0, fused_after = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    const auto before = std::make_unique<graph>(), after = std::make_unique<graph>();
    random_products(*before, seed, Ranks, Casts);
    *after = *before;
    INFO("seed " << seed);
    REQUIRE(run_passes<sw::merge_products>(*after) == "");
    const int had = sw::passes::kernel_calls(*before).kernels, has = sw::passes::kernel_calls(*after).kernels;
    CHECK(has <= had);
    merged += has < had ? 1 : 0;
    sums += added_up(*after);
    exact += added_up(*after) == 0 && has < had ? 1 : 0;
    before_all += had;
    after_all += has;
    // fusion finds nearly all that it found: but a value in a stack stays a node, and what followed it in its kernel does not
    graph apart = *before, together = *after;
    REQUIRE(run_passes<sw::fuse_kernels>(apart) == "");
    REQUIRE(run_passes<sw::fuse_kernels>(together) == "");
    const int fused_apart = sw::passes::kernel_calls(apart).kernels,
              fused_together = sw::passes::kernel_calls(together).kernels;
    worse += fused_together > fused_apart ? 1 : 0;
    fused_before += fused_apart;
    fused_after += fused_together;
    std::vector<double> worst(Ranks, 0);
    sw::launch<mesh<Ranks>>([&](auto& rank) {
      worst[static_cast<std::size_t>(rank.index())] = distance(run_graph(rank, *before), run_graph(rank, *after));
    });
    for (const double w : worst) {
      INFO(sw::to_text(*before) << "\n" << sw::to_text(*after));
      REQUIRE(w <= (added_up(*after) == 0 ? 0 : 1e-12));
    }
  }
  MESSAGE(Ranks << " ranks: " << merged << " of " << graphs << " graphs with fewer kernels, " << before_all << " -> "
                << after_all << ", " << exact << " of them bit for bit, " << sums << " products added up; fused "
                << fused_before << " -> " << fused_after);
  CHECK(worse < graphs / 20);
  CHECK(fused_after < fused_before);
  CHECK(merged > graphs / 4);
  CHECK(exact > 10);
  CHECK(sums > (Casts ? 3 : 10));
}

TEST_CASE("merged products: random graphs on one rank have the same values") { check_values<1>(); }
TEST_CASE("merged products: random graphs on two ranks have the same values") { check_values<2>(); }
TEST_CASE("merged products: random graphs on three ranks have the same values") { check_values<3>(); }
TEST_CASE("merged products: random graphs on four ranks have the same values") { check_values<4>(); }
TEST_CASE("merged products: random graphs through casts have the same values") {
  check_values<1, true>();
  check_values<2, true>();
  check_values<3, true>();
  check_values<4, true>();
}

// --- what is merged, and what is not ----------------------------------------------------------------------------------

// Attention's three projections of x by weights that lie with their biases, forward and back.
struct projections {
  graph g;
  maker m{g, 1};
  int x = -1, w[3], c[3], y[3], d[3];

  explicit projections(std::int64_t rows = 4, sw::dtype type = sw::dtype::f32) {
    m.type = type;
    x = m.leaf(op_code::input, {2, rows, 16}, sw::reduced_value());
    for (int k = 0; k < 3; ++k) {
      w[k] = m.leaf(op_code::param, {16, 16}, sw::reduced_value());
      c[k] = m.leaf(op_code::param, {16}, sw::reduced_value());
    }
  }
  void forward() {
    for (int k = 0; k < 3; ++k) y[k] = m.add(m.project(x, w[k]), c[k]);
  }
  // In autodiff's order, the last one first.
  void backward() {
    for (int k = 0; k < 3; ++k) d[k] = m.tanh(m.apply(op_code::softmax, {}, 0, y[k]));
    int total = -1;
    for (int k = 2; k >= 0; --k) {
      m.output(m.rows(d[k]));
      const int back = m.back(d[k], w[k]);
      total = total < 0 ? back : m.add(total, back);
      m.output(m.weigh(d[k], x));
    }
    m.output(total);
  }
  graph merged() {
    m.finish();
    graph after = g;
    CHECK(run_passes<sw::merge_products>(after) == "");
    CHECK(!sw::verify(after));
    return after;
  }
};

TEST_CASE("merged products: three projections with biases and all that goes back through them are four kernels") {
  projections p;
  p.forward();
  p.backward();
  const graph g = p.merged();
  CHECK(count_of(p.g, op_code::einsum) == 9);
  CHECK(count_of(g, op_code::einsum) == 3);  // forward, back, gradients
  CHECK(count_of(g, op_code::add) == 1);
  CHECK(count_of(g, op_code::sum) == 1);
  CHECK(count_of(g, op_code::pack) == 3);  // weights, biases, cotangents
  CHECK(added_up(g) == 1);
  // one weight's gradient with its bias's is one kernel, so are three of them
  graph fused = g;
  CHECK(run_passes<sw::fuse_kernels>(fused) == "");
  CHECK(sw::passes::kernel_calls(fused).kernels == 3 + 6);
  CHECK(count_of(fused, op_code::sum) == 0);
  CHECK(count_of(fused, op_code::add) == 0);
}

// The same by casts of the parameters, each made where it is first read, and gradients that are cast at once.
struct low_projections : projections {
  int x16, w16[3], c16[3];

  low_projections() : x16(m.cast(x, sw::dtype::bf16)) {}
  void forward(sw::dtype of_last = sw::dtype::bf16) {
    for (int k = 0; k < 3; ++k) {
      w16[k] = m.cast(w[k], k == 2 ? of_last : sw::dtype::bf16);
      const int p = m.project(x16, w16[k]);
      c16[k] = m.cast(c[k], k == 2 ? of_last : sw::dtype::bf16);
      y[k] = p < 0 ? -1 : m.add(p, c16[k]);
    }
  }
  void backward() {
    for (int k = 0; k < 3; ++k) d[k] = m.tanh(m.apply(op_code::softmax, {}, 0, y[k]));
    int total = -1;
    for (int k = 2; k >= 0; --k) {
      m.output(m.cast(m.rows(d[k]), sw::dtype::f32));
      const int back = m.back(d[k], w16[k]);
      total = total < 0 ? back : m.add(total, back);
      m.output(m.cast(m.weigh(d[k], x16), sw::dtype::f32));
    }
    m.output(total);
  }
};

TEST_CASE("merged products: three projections by casts of parameters are four kernels as well") {
  low_projections p;
  p.forward();
  p.backward();
  const graph g = p.merged();
  CHECK(count_of(p.g, op_code::einsum) == 9);
  CHECK(count_of(g, op_code::einsum) == 3);
  CHECK(count_of(g, op_code::add) == 1);
  CHECK(count_of(g, op_code::sum) == 1);
  CHECK(count_of(g, op_code::pack) == 3);       // weights and biases as floats, cotangents
  CHECK(count_of(p.g, op_code::cast) == 13);    // of x, weights, biases, and gradients of both
  CHECK(count_of(g, op_code::cast) == 13 - 4);  // one for three weights, one for three biases
  graph fused = g;
  CHECK(run_passes<sw::fuse_kernels>(fused) == "");
  CHECK(!sw::verify(fused));
  CHECK(count_of(fused, op_code::sum) == 0);
  CHECK(sw::passes::kernel_calls(fused).kernels == 3 + 6 + 9);
}

TEST_CASE("merged products: what is read early of casts that are one is a block of it") {
  low_projections p;
  const int early = p.m.cast(p.w[2], sw::dtype::bf16);
  p.m.output(p.m.tanh(early));
  for (int k = 0; k < 3; ++k) p.m.output(p.m.project(p.x16, k == 2 ? early : p.m.cast(p.w[k], sw::dtype::bf16)));
  const graph g = p.merged();
  CHECK(count_of(g, op_code::cast) == 2);
  CHECK(count_of(g, op_code::einsum) == 1);
}

TEST_CASE("merged products: casts of other types, by other attributes, or before an update stay apart") {
  {
    low_projections p;  // of the same type, but its cotangents are summed up in another one
    for (int k = 0; k < 2; ++k)
      p.m.output(p.m.project(
          p.x16, p.m.apply(op_code::cast,
                           sw::attributes<sw::cast_attributes>(static_cast<int>(sw::dtype::bf16),
                                                               k == 0 ? 0 : 1 + static_cast<int>(sw::dtype::f32)),
                           0, p.w[k])));
    CHECK(count_of(p.merged(), op_code::einsum) == 2);
  }
  {
    low_projections p;  // the second is of what an update has left
    p.m.output(p.m.project(p.x16, p.m.cast(p.w[0], sw::dtype::bf16)));
    p.m.update(p.w[1], p.m.weigh(p.m.tanh(p.x), p.x));
    p.m.output(p.m.project(p.x16, p.m.cast(p.w[1], sw::dtype::bf16)));
    CHECK(count_of(p.merged(), op_code::pack) == 0);
  }
  {
    low_projections p;  // read together behind the update, but cast on both sides of it
    const int before = p.m.cast(p.w[0], sw::dtype::bf16);
    p.m.update(p.w[0], p.m.weigh(p.m.tanh(p.x), p.x));
    p.m.output(p.m.project(p.x16, before));
    p.m.output(p.m.project(p.x16, p.m.cast(p.w[1], sw::dtype::bf16)));
    CHECK(count_of(p.merged(), op_code::pack) == 0);
  }
}

TEST_CASE("merged products: a sibling that needs another one stays apart") {
  projections p;
  const int y = p.m.project(p.x, p.w[0]);
  // reads x as well, but by a weight that is made of the first product
  const int made = p.m.weigh(y, p.x);
  p.m.output(p.m.project(p.x, made));
  p.m.output(y);
  const graph g = p.merged();
  CHECK(count_of(g, op_code::einsum) == 3);
  CHECK(count_of(g, op_code::pack) == 0);
}

TEST_CASE("merged products: siblings on both sides of an update stay apart") {
  projections p;
  p.m.output(p.m.project(p.x, p.w[0]));
  p.m.update(p.w[1], p.m.weigh(p.m.tanh(p.x), p.x));
  p.m.output(p.m.project(p.x, p.w[1]));
  p.m.output(p.m.project(p.x, p.w[2]));
  const graph g = p.merged();
  CHECK(count_of(g, op_code::einsum) == 3);  // the last two are one
  CHECK(count_of(g, op_code::pack) == 1);
}

TEST_CASE("merged products: siblings of which each is followed by a function of its own stay apart") {
  projections p;
  for (int k = 0; k < 3; ++k) p.m.output(p.m.tanh(p.m.project(p.x, p.w[k])));
  CHECK(count_of(p.merged(), op_code::einsum) == 3);
  projections q;  // a gate: both go into one function
  q.m.output(q.m.apply(op_code::mul, {}, 0, q.m.tanh(q.m.project(q.x, q.w[0])), q.m.project(q.x, q.w[1])));
  CHECK(count_of(q.merged(), op_code::einsum) == 1);
}

TEST_CASE("merged products: other extents, gaps between slots, and what lies elsewhere already") {
  {
    projections p;
    const int wide = p.m.leaf(op_code::param, {32, 16}, sw::reduced_value());
    p.m.output(p.m.project(p.x, wide));
    p.m.output(p.m.project(p.x, p.w[0]));
    CHECK(count_of(p.merged(), op_code::pack) == 0);
  }
  {
    projections p(1);  // the rows' gradients: 2 x 16 floats fill two slots
    p.forward();
    p.backward();
    CHECK(count_of(p.merged(), op_code::pack) == 3);
  }
  {
    projections p;
    const int small[2] = {p.m.leaf(op_code::param, {3, 16}, sw::reduced_value()),
                          p.m.leaf(op_code::param, {3, 16}, sw::reduced_value())};
    for (const int w : small) p.m.output(p.m.project(p.x, w));  // 48 floats: three slots
    CHECK(count_of(p.merged(), op_code::pack) == 1);
  }
  {
    graph g;
    maker m(g, 1);
    const int x = m.leaf(op_code::input, {2, 4, 5}, sw::reduced_value());
    for (int k = 0; k < 2; ++k) m.output(m.project(x, m.leaf(op_code::param, {3, 5}, sw::reduced_value())));
    m.finish();
    graph after = g;
    CHECK(run_passes<sw::merge_products>(after) == "");
    CHECK(sw::to_text(after) == sw::to_text(g));
  }
  {
    graph g;
    maker m(g, 3);  // 16 rows on three ranks: the last has fewer
    const int x = m.leaf(op_code::input, {2, 4, 16}, sw::reduced_value());
    for (int k = 0; k < 2; ++k) m.output(m.project(x, m.leaf(op_code::param, {16, 16}, sw::shard_value(0))));
    m.finish();
    graph after = g;
    CHECK(run_passes<sw::merge_products>(after) == "");
    CHECK(count_of(after, op_code::einsum) == 2);
  }
}

TEST_CASE("merged products: the order of passes") {
  graph g;
  projections p;
  p.forward();
  p.backward();
  p.m.finish();
  g = p.g;
  CHECK(run_passes<sw::merge_products, sw::fuse_kernels>(g) == "");
  CHECK(run_passes<sw::fuse_kernels, sw::merge_products>(g = p.g).find("must be applied after") != std::string::npos);
  CHECK(run_passes<sw::merge_products, sw::merge_common>(g = p.g).find("must be applied after") != std::string::npos);
  CHECK(run_passes<sw::merge_products, sw::fused_optimizer>(g = p.g).find("must be applied after") != std::string::npos);
  CHECK(run_passes<sw::merge_products, sw::comm_fusion_in_place<>>(g = p.g).find("must be applied after") !=
        std::string::npos);
}

TEST_CASE("merged products: the verifier knows them") {
  projections p;
  p.forward();
  p.backward();
  graph g = p.merged();
  CHECK(run_passes<sw::fuse_kernels>(g) == "");
  int tried = 0;
  const auto refused = [&](auto&& change) {
    graph broken = g;
    change(broken);
    ++tried;
    CHECK(sw::verify(broken));
  };
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    if (n.op == op_code::unpack) {  // more than the pack holds
      refused([i](graph& b) {
        b.specs[b.spec_count] = b.spec_of(i);
        ++b.specs[b.spec_count].extent[0];
        sw::make_contiguous(b.specs[b.spec_count]);
        b.nodes[i].spec = b.spec_count++;
      });
      refused([i](graph& b) { b.nodes[i].a.v[0] = 16; });
    } else if (n.op == op_code::pack && n.a.v[2] == 0) {  // a view has no storage to place
      refused([i](graph& b) {
        for (int k = 0; k < i; ++k)
          if (b.nodes[k].op == op_code::reshape) b.nodes[i].in[0] = k;
      });
    } else if (n.op == op_code::einsum) {
      refused([i](graph& b) { b.nodes[i].a.v[2] = 0x4321; });
      if (n.a.v[3] != 0) {
        refused([i](graph& b) { b.nodes[i].a.v[0] = 0x315F & ~0xF0; });
        refused([i](graph& b) { --b.nodes[i].inputs; });
      }
    } else if (n.op == op_code::slice) {
      refused([i](graph& b) { b.nodes[i].a.v[1] = 3; });
    }
  }
  CHECK(tried > 15);
}

}  // namespace
