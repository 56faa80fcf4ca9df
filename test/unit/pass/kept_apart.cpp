// SPDX-License-Identifier: Apache-2.0
// What passes must tell apart: nodes that differ in little, readers before and after a write, buckets and lists of unlike
// things, storage of values that live at one time.
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <graph_maker.hpp>
#include <random_graph.hpp>
#include <set>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::op_code;

constexpr sw::placement R = sw::replicate_value(), U = sw::reduced_value(), P = sw::partial_value(), S0 = sw::shard_value(0);

// --- equal nodes -----------------------------------------------------------------------------------------------------

// The table that finds equal nodes is crowded, and by other ids crowded elsewhere.
TEST_CASE("merge_common keeps apart what differs in its attributes alone, however its table is filled") {
  for (int before = 0; before < 40; ++before) {
    test::graph_maker<96> m;
    int x = 0;
    for (int k = 0; k <= before; ++k) x = m.leaf(op_code::input, R, k);
    std::vector<int> ids;
    for (std::int64_t diagonal = -10; diagonal < 10; ++diagonal)
      for (std::int64_t upper = 0; upper < 2; ++upper)
        ids.push_back(m.apply(op_code::triangle, {{diagonal, upper, 0, 0, 0, 0}}, {x}));
    auto g = m.finish();
    for (const int id : {ids.front(), ids.back()}) g.outputs[g.output_count++] = id;
    const int nodes = g.node_count;
    // outputs are few: everything is kept alive by a sum
    sw::builder b = g.edit();
    int sum = ids[0];
    for (std::size_t k = 1; k < ids.size() && !b.overflowed() && b.node_count < 96; ++k) {
      sw::node n = sw::empty_node;
      n.op = op_code::add;
      n.inputs = 2;
      n.in[0] = sum;
      n.in[1] = ids[k];
      n.spec = g.nodes[ids[0]].spec;
      sum = b.append(n);
    }
    g.finish(b);
    g.outputs[g.output_count++] = sum;
    sw::passes::remove_dead(g);
    const int live = g.node_count;
    sw::merge_common::apply(g);
    CHECK(g.node_count == live);
    CHECK(nodes == before + 41);
  }
}

TEST_CASE("merge_common keeps apart what differs in the order of its operands") {
  for (int before = 0; before < 60; ++before) {
    test::graph_maker<160> m;
    for (int k = 0; k < before; ++k) m.leaf(op_code::input, R, 100 + k);
    int x[6];
    for (int k = 0; k < 6; ++k) x[k] = m.leaf(op_code::input, R, k);
    int sum = -1;
    for (int i = 0; i < 6; ++i)
      for (int j = 0; j < 6; ++j) {
        if (i == j) continue;
        const int d = m.apply(op_code::sub, x[i], x[j]);
        sum = sum < 0 ? d : m.apply(op_code::add, sum, d);
      }
    auto g = m.finish(sum);
    const int live = g.node_count;
    sw::merge_common::apply(g);
    CHECK(g.node_count == live);
  }
}

// --- readers and writes ----------------------------------------------------------------------------------------------

// Every reader of a leaf, with the number of updates that the leaf has seen by then.
template <class Graph>
std::multiset<std::string> versions(const Graph& g) {
  std::vector<int> writes(static_cast<std::size_t>(g.node_count), 0);
  std::multiset<std::string> all;
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    for (int k = 0; k < n.inputs; ++k)
      if (sw::is_leaf(g.nodes[n.in[k]].op))
        all.insert(std::string(sw::name_of(n.op)) + " reads " + std::to_string(g.nodes[n.in[k]].a.v[0]) + " after " +
                   std::to_string(writes[static_cast<std::size_t>(n.in[k])]));
    if (sw::is_update(n.op)) ++writes[static_cast<std::size_t>(n.in[0])];
  }
  return all;
}

// A product is dear, and what is dear does not fit between two collectives.
struct dear_products {
  template <class Graph>
  static constexpr double microseconds(const Graph& g, int i) {
    if (sw::is_collective(g, i)) return 10;
    return g.nodes[i].op == op_code::einsum ? 1000 : 1;
  }
};

template <class Pass, class Graph>
void check_order(const Graph& g) {
  Graph after = g;
  REQUIRE(!Pass::apply(after));
  CHECK(!sw::verify(after));
  CHECK(versions(after) == versions(g));
}
template <class Graph>
void check_orders(const Graph& g) {
  check_order<sw::sink_waits>(g);
  check_order<sw::raise_comms>(g);
  check_order<sw::expedite_comms>(g);
  check_order<sw::schedule_comm_wait>(g);
  check_order<sw::reorder_compute_for_overlap<dear_products>>(g);
  check_order<sw::reorder_compute_for_overlap<>>(g);
}

using maker = test::graph_maker<64>;
constexpr sw::op_attr square_product{{0x21, 0x32, 0x31, 0, 0, 0}};

TEST_CASE("passes that move collectives and kernels leave every reader before or after the writes that it was") {
  {
    maker m;  // a parameter is gathered after its update
    const int w = m.leaf(op_code::param, S0), x = m.leaf(op_code::input, S0, 1), early = m.apply(op_code::relu, w);
    m.apply(op_code::sgd, w, x);
    const int late = m.to(w, R);
    check_orders(m.finish(early, m.apply(op_code::relu, late)));
  }
  {
    maker m;  // and before it
    const int w = m.leaf(op_code::param, S0), x = m.leaf(op_code::input, S0, 1), early = m.to(w, R);
    m.apply(op_code::sgd, w, x);
    check_orders(m.finish(m.apply(op_code::relu, early), m.apply(op_code::tanh, w)));
  }
  {
    maker m;  // between two collectives there is room for the update, not for the product that reads before it
    const int w = m.leaf(op_code::param, R, 0, sw::dtype::f32, 6, 6), d = m.leaf(op_code::input, R, 1, sw::dtype::f32, 6, 6);
    const int x = m.leaf(op_code::input, P, 2, sw::dtype::f32, 6, 6),
              y = m.leaf(op_code::input, S0, 3, sw::dtype::f32, 6, 6);
    const int whole = m.to(x, R);
    const int rows = m.to(y, R);
    const int product = m.apply(op_code::einsum, square_product, {w, d});
    m.apply(op_code::sgd, w, d);
    check_orders(m.finish(m.apply(op_code::relu, whole), m.apply(op_code::relu, rows), product));
  }
}

// --- buckets and lists -----------------------------------------------------------------------------------------------

// Gradient `g` summed over the axis, for the update of parameter `index`.
int summed(maker& m, int g, int index, sw::dtype type = sw::dtype::f32) {
  const int whole = m.to(g, U);
  m.apply(op_code::sgd, m.leaf(op_code::param, R, index, type), whole);
  return whole;
}
template <class Graph>
int collectives(const Graph& g) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += sw::is_collective(g, i) ? 1 : 0;
  return n;
}

TEST_CASE("a bucket takes neither gradients of another type nor one that depends on its own result") {
  const auto fused = [](maker& m) {
    sw::graph<256, 128> g;
    sw::copy_into(g, m.finish());
    REQUIRE(!sw::comm_fusion_in_place<1>::apply(g));
    REQUIRE(!sw::verify(g));
    return collectives(g);
  };
  maker alike;
  for (int k = 0; k < 3; ++k) summed(alike, alike.apply(op_code::scale, alike.leaf(op_code::input, P, k)), k);
  CHECK(fused(alike) == 1);
  maker unlike;
  for (int k = 0; k < 4; ++k) {
    const sw::dtype type = k % 2 == 0 ? sw::dtype::f32 : sw::dtype::f64;
    summed(unlike, unlike.apply(op_code::scale, unlike.leaf(op_code::input, P, k, type)), k, type);
  }
  CHECK(fused(unlike) == 2);
  maker chained;
  const int x = chained.leaf(op_code::input, P);
  const int first = summed(chained, chained.apply(op_code::scale, x), 0);
  summed(chained, chained.apply(op_code::mul, first, x), 1);
  CHECK(fused(chained) == 2);
}

TEST_CASE("a list of updates takes those alike, and gives each parameter its own slot") {
  maker m;
  const int grads[] = {m.leaf(op_code::input, R, 0), m.leaf(op_code::input, R, 1), m.leaf(op_code::input, R, 2)};
  int results[3];
  for (int k = 0; k < 3; ++k) {
    const int p = m.leaf(op_code::param, R, k), mean = m.leaf(op_code::state, R, 2 * k),
              square = m.leaf(op_code::state, R, 2 * k + 1);
    results[k] = m.apply(op_code::adam, {{0, 1, 0, 0, 0, 0}}, {p, grads[k], mean, square});
    m.b.nodes[results[k]].f = k == 1 ? 0 : 1;  // this one does not decay
  }
  int read[3];
  for (int k = 0; k < 3; ++k) read[k] = m.apply(op_code::relu, results[k]);
  sw::graph<256, 128> g;
  sw::copy_into(g, m.finish(read[0], read[1], read[2]));
  REQUIRE(!sw::fused_optimizer::apply(g));
  REQUIRE(!sw::verify(g));
  int updates = 0;
  std::multiset<std::int64_t> slots;
  for (int i = 0; i < g.node_count; ++i) {
    updates += g.nodes[i].op == op_code::adam ? 1 : 0;
    if (g.nodes[i].op == op_code::unpack) slots.insert(g.nodes[i].a.v[0]);
  }
  CHECK(updates == 2);
  const std::int64_t slot = sw::passes::align_up(24 * 4) / 4;
  CHECK(slots == std::multiset<std::int64_t>{0, 0, slot});
}

// --- storage ---------------------------------------------------------------------------------------------------------

// Where two values are alive at once, their bytes in the arena are apart. Alive: from the node that computes a value to the
// last one that reads it, or a view of it.
template <class Graph>
int overlaps(const Graph& g) {
  const auto p = sw::passes::plan_memory<sw::host_backend>::plan_of(g, 0);
  const int n = g.node_count;
  std::vector<int> of(static_cast<std::size_t>(n)), last(static_cast<std::size_t>(n));
  constexpr int origin[sw::max_axes]{};
  const auto at = [](auto& v, int i) -> auto& { return v[static_cast<std::size_t>(i)]; };
  for (int i = 0; i < n; ++i) {
    const sw::node& x = g.nodes[i];
    const bool view = x.inputs > 0 && sw::may_view(x.op) && sw::is_view(x, g.spec_of(x.in[0]), g.spec_of(i));
    at(of, i) = view ? at(of, x.in[0]) : i;
    at(last, i) = sw::is_leaf(x.op) ? n : i;
    for (int k = 0; k < x.inputs; ++k) at(last, at(of, x.in[k])) = std::max(at(last, at(of, x.in[k])), i);
  }
  for (int k = 0; k < g.output_count; ++k) at(last, at(of, g.outputs[k])) = n;
  const auto bytes = [&](int i) {
    return sw::local_numel(g.spec_of(i), origin) * static_cast<std::int64_t>(sw::size_of(g.spec_of(i).type));
  };
  int wrong = 0;
  for (int j = 0; j < n; ++j)
    for (int i = 0; i < j; ++i) {
      if (at(of, i) != i || at(of, j) != j || at(last, i) < j) continue;  // a view, or i has died before j
      const bool apart =
          p.offset[i] + bytes(i) <= p.offset[j] || p.offset[j] + bytes(j) <= p.offset[i] || bytes(i) == 0 || bytes(j) == 0;
      // the last reader of a value, or of a view that is stored as its result is, may compute where that lies
      bool in_place = false;
      for (int k = 0; k < g.nodes[j].inputs; ++k) {
        const int operand = g.nodes[j].in[k];
        in_place =
            in_place || (at(of, operand) == i && p.offset[operand] == p.offset[j] && g.spec_of(operand) == g.spec_of(j));
      }
      if (!apart && !(in_place && at(last, i) == j && sw::rules::is_pointwise(g.nodes[j].op))) ++wrong;
    }
  return wrong;
}

TEST_CASE("values that live at one time lie apart in the arena, in random graphs") {
  for (int ranks = 1; ranks <= 3; ++ranks)
    for (std::uint64_t seed = 0; seed < 300; ++seed) {
      const auto g = test::random_graph<40>(seed, ranks);
      INFO("seed " << seed << ", " << ranks << " ranks");
      CHECK(overlaps(g) == 0);
    }
}

TEST_CASE("an operand given twice dies once") {
  maker m;
  const int x = m.leaf(op_code::input, R, 0, sw::dtype::f32, 6, 6);
  const int t = m.apply(op_code::relu, x), u = m.apply(op_code::einsum, square_product, {t, t});
  int sum = u;
  int more[4];
  for (int& id : more) id = m.apply(op_code::einsum, square_product, {x, u});
  for (const int id : more) sum = m.apply(op_code::add, sum, id);
  CHECK(overlaps(m.finish(sum)) == 0);
}

TEST_CASE("a value that is read turned as well is not overwritten by what reads it") {
  maker m;
  const int x = m.leaf(op_code::input, R, 0, sw::dtype::f32, 6, 6), t = m.apply(op_code::relu, x);
  const int turned = m.apply(op_code::permute, {{1, 0, 0, 0, 0, 0}}, {t});
  sw::node n = sw::empty_node;
  n.op = op_code::add;
  n.inputs = 2;
  n.in[0] = t;
  n.in[1] = turned;
  n.spec = m.b.nodes[t].spec;
  const int sum = m.b.append(n);
  const auto g = m.finish(sum);
  const auto p = sw::passes::plan_memory<sw::host_backend>::plan_of(g, 0);
  CHECK(p.offset[sum] != p.offset[t]);
}

}  // namespace
