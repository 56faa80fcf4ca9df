// SPDX-License-Identifier: Apache-2.0
// The passes that move collectives, waits and kernels: on random graphs they keep every node, every operand and the order
// of collectives, so the bits; each puts what it moves where it says; stages of any size give the same graph.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/framework/sequence.hpp>
#include <shardwise/pass/framework/sweep.hpp>
#include <shardwise/pass/communication/waits.hpp>

#include <doctest/doctest.h>

#include <map>
#include <random_graph.hpp>
#include <set>
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
using graph = sw::graph<2 * graph_nodes, graph_nodes>;  // room for waits

constexpr graph roomy(std::uint64_t seed, int ranks) {
  const auto g = test::random_graph<graph_nodes>(seed, ranks);
  graph r;
  sw::copy_into(r, g);
  sw::passes::remove_dead(r);
  return r;
}

bool communicates_at(const graph& g, int i) { return sw::communicates(sw::detail::transition_at(g, i)); }

// A node by what it computes: of the whole tree below it.
std::vector<std::string> expressions(const graph& g) {
  std::vector<std::string> e;
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    if (n.op == op_code::wait) {  // the value of its operand
      e.push_back(e[static_cast<std::size_t>(n.in[0])]);
      continue;
    }
    std::string s = std::string(sw::name_of(n.op)) + "." + std::to_string(n.spec) + "." + std::to_string(n.f);
    for (const std::int64_t v : n.a.v) s += "." + std::to_string(v);
    s += "(";
    for (int k = 0; k < n.inputs; ++k) s += e[static_cast<std::size_t>(n.in[k])] + ",";
    e.push_back(std::to_string(std::hash<std::string>{}(s + ")")));
  }
  return e;
}

std::multiset<std::string> computed(const graph& g) {
  const auto e = expressions(g);
  std::multiset<std::string> all;
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op != op_code::wait) all.insert(e[static_cast<std::size_t>(i)]);
  return all;
}

struct counts {
  int collectives = 0, moved = 0;
};

// What holds after each of the passes.
void check_moves(const graph& before, const graph& after, counts& c, bool in_order = true) {
  REQUIRE(!sw::verify(after));
  CHECK(computed(before) == computed(after));
  const auto x = expressions(before), y = expressions(after);
  REQUIRE(before.output_count == after.output_count);
  for (int k = 0; k < before.output_count; ++k)
    CHECK(x[static_cast<std::size_t>(before.outputs[k])] == y[static_cast<std::size_t>(after.outputs[k])]);
  if (in_order) CHECK(sw::passes::order_of(before).order_hash == sw::passes::order_of(after).order_hash);
  // every collective has one wait, and nothing else reads it
  int unawaited = 0;
  std::map<int, int> waits;
  for (int i = 0; i < after.node_count; ++i) {
    const sw::node& n = after.nodes[i];
    if (n.op == op_code::wait) ++waits[n.in[0]];
    for (int k = 0; k < n.inputs; ++k)
      if (n.op != op_code::wait && communicates_at(after, n.in[k])) ++unawaited;
  }
  for (int i = 0; i < after.node_count; ++i)
    if (communicates_at(after, i)) {
      ++c.collectives;
      if (waits[i] != 1) ++unawaited;
    }
  CHECK(unawaited == 0);
  bool same = before.node_count == after.node_count;
  for (int i = 0; same && i < after.node_count; ++i) same = x[static_cast<std::size_t>(i)] == y[static_cast<std::size_t>(i)];
  c.moved += same ? 0 : 1;
}

bool reads(const sw::node& n, int id) {
  for (int k = 0; k < n.inputs; ++k)
    if (n.in[k] == id) return true;
  return false;
}

// A wait stands right before the first node that reads it, with other waits of that node; or no node reads it, and it
// stands at the end.
int misplaced_waits(const graph& g) {
  int wrong = 0;
  for (int i = 0; i < g.node_count; ++i) {
    if (g.nodes[i].op != op_code::wait) continue;
    int user = i + 1;
    while (user < g.node_count && !reads(g.nodes[user], i)) ++user;
    for (int j = i + 1; j < user; ++j) {
      const bool belongs = user == g.node_count || reads(g.nodes[user], j);
      if (g.nodes[j].op != op_code::wait || !belongs) ++wrong;
    }
  }
  return wrong;
}

// A collective stands right behind the last of: its operand, the collective before; other collectives may stand between.
int late_collectives(const graph& g) {
  int wrong = 0, before = -1;
  for (int i = 0; i < g.node_count; ++i) {
    if (!communicates_at(g, i)) continue;
    const int last = g.nodes[i].in[0] > before ? g.nodes[i].in[0] : before;
    if (last != i - 1) ++wrong;
    before = i;
  }
  return wrong;
}

// A collective stands right behind its operand; other collectives with the same one, or theirs, may stand between.
int not_expedited(const graph& g) {
  int wrong = 0;
  for (int i = 0; i < g.node_count; ++i)
    for (int j = g.nodes[i].in[0] + 1; communicates_at(g, i) && j < i; ++j) wrong += communicates_at(g, j) ? 0 : 1;
  return wrong;
}

template <class... Passes>
graph moved(const graph& g) {
  graph out = g;
  sw::pass_sequence<graph> passes;
  (
      [&] {
        const auto report = passes.apply(sw::entry_of<Passes, graph>(), out);
        REQUIRE(report.text == "");
      }(),
      ...);
  return out;
}

using overlap = sw::reorder_compute_for_overlap<>;

template <int Ranks>
void check_bits() {
  counts scheduled, sunk, raised, reordered, all, expedited;
  int different = 0;
  for (std::uint64_t seed = 0; seed < graphs; ++seed) {
    const graph before = roomy(seed, Ranks);
    REQUIRE(!sw::verify(before));
    const graph a = moved<sw::schedule_comm_wait>(before), b = moved<sw::sink_waits>(before),
                c = moved<sw::raise_comms>(before), d = moved<overlap>(before),
                e = moved<overlap, sw::sink_waits, sw::raise_comms>(before), f = moved<sw::expedite_comms>(before),
                h = moved<sw::expedite_comms, overlap, sw::sink_waits, sw::raise_comms>(before);
    check_moves(before, a, scheduled);
    check_moves(before, b, sunk);
    check_moves(before, c, raised);
    check_moves(before, d, reordered);
    check_moves(before, e, all);
    check_moves(before, f, expedited, false);
    check_moves(before, h, expedited, false);
    CHECK(sw::passes::order_of(f).order_hash == sw::passes::order_of(h).order_hash);
    CHECK(not_expedited(f) == 0);
    CHECK(misplaced_waits(b) == 0);
    CHECK(late_collectives(c) == 0);
    CHECK(late_collectives(e) == 0);
    // in place already
    CHECK(sw::to_text(moved<sw::sink_waits>(b)) == sw::to_text(b));
    CHECK(sw::to_text(moved<sw::raise_comms>(c)) == sw::to_text(c));
    CHECK(sw::to_text(moved<sw::schedule_comm_wait>(a)) == sw::to_text(a));
    std::vector<int> wrong(Ranks, 0);
    sw::launch<mesh<Ranks>>([&](auto& rank) {
      sw::eager<std::remove_reference_t<decltype(rank)>> on(rank);
      const auto want = test::run_graph(on, before);
      for (const graph* g : {&a, &b, &c, &d, &e, &f, &h})
        wrong[static_cast<std::size_t>(rank.index())] += test::run_graph(on, *g) == want ? 0 : 1;
    });
    for (const int w : wrong) different += w;
    if (different != 0) {
      INFO("seed " << seed << "\n" << sw::to_text(before) << "\n" << sw::to_text(e));
      REQUIRE(different == 0);
    }
  }
  MESSAGE(Ranks << " ranks, graphs moved: " << scheduled.moved << " " << sunk.moved << " " << raised.moved << " "
                << reordered.moved << " of " << graphs << ", " << all.collectives << " collectives");
  if (Ranks > 1) {
    CHECK(scheduled.moved > graphs / 2);
    CHECK(sunk.moved > graphs / 2);
    CHECK(raised.moved > graphs / 2);
    CHECK(reordered.moved > graphs / 2);
    CHECK(all.collectives > graphs);
  }
}

TEST_CASE("overlap passes: random graphs on two ranks give the same bits") { check_bits<2>(); }
TEST_CASE("overlap passes: random graphs on three ranks give the same bits") { check_bits<3>(); }

// --- constants -------------------------------------------------------------------------------------------------------

template <int Seed>
struct random_source {
  static constexpr graph value = roomy(Seed, 2);
};

template <class Pass, int Nodes, int... Seed>
int different_from_run_time(std::integer_sequence<int, Seed...>) {
  return (0 + ... +
          (sw::to_text(Pass::template in_stages<random_source<Seed>, Nodes>::value) ==
                   sw::to_text(moved<Pass>(random_source<Seed>::value))
               ? 0
               : 1));
}
template <class Pass>
void check_stages() {
  constexpr auto seeds = std::make_integer_sequence<int, 5>{};
  CHECK(different_from_run_time<Pass, 8>(seeds) == 0);
  CHECK(different_from_run_time<Pass, 100>(seeds) == 0);
  CHECK(different_from_run_time<Pass, 4000>(seeds) == 0);
}

TEST_CASE("overlap passes: constants in stages of any size are the graphs made at run time") {
  check_stages<sw::schedule_comm_wait>();
  check_stages<sw::raise_comms>();
  check_stages<sw::expedite_comms>();
  check_stages<overlap>();
}

// --- what it is for --------------------------------------------------------------------------------------------------

// x, shared out, is summed up twice while a chain of products that needs neither goes on.
struct scene {
  graph g;
  int first = -1, second = -1;
  std::vector<int> products;
};

int append(sw::builder& b, op_code op, const std::vector<int>& in, const sw::op_attr& a = {}) {
  sw::node n = sw::empty_node;
  n.op = op;
  n.a = a;
  sw::spec s[sw::max_inputs]{};
  for (const int i : in) {
    n.in[n.inputs] = i;
    s[n.inputs++] = b.specs[b.nodes[i].spec];
  }
  const sw::outcome o = sw::infer(op, a, s, n.inputs);
  REQUIRE(!o.error);
  n.spec = b.intern(o.out);
  return b.append(n);
}

scene two_sums_and_products() {
  scene s;
  sw::builder b = s.g.edit();
  const std::int32_t sizes[] = {2};
  const auto input = [&](int k, sw::placement p) {
    sw::spec x = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
    x.rank = 2;
    x.extent[0] = x.extent[1] = 256;
    sw::make_contiguous(x);
    x.place[0] = p;
    sw::node n = sw::empty_node;
    n.op = op_code::input;
    n.a.v[0] = k;
    n.spec = b.intern(x);
    return b.append(n);
  };
  const int x = input(0, sw::partial_value()), w = input(1, sw::replicate_value());
  const sw::op_attr sum{{0, sw::pack(sw::replicate_value()), 0, 0, 0, 0}};
  const sw::op_attr product{{0x21, 0x32, 0x31, 0, 0, 0}};
  s.first = append(b, op_code::redistribute, {x}, sum);
  const int twice = append(b, op_code::scale, {x});
  s.second = append(b, op_code::redistribute, {twice}, sum);
  const int both = append(b, op_code::add, {s.first, s.second});
  int last = w;
  for (int k = 0; k < 6; ++k) s.products.push_back(last = append(b, op_code::einsum, {last, w}, product));
  const int out = append(b, op_code::add, {both, last});
  s.g.finish(b);
  s.g.outputs[s.g.output_count++] = out;
  return s;
}

// Each collective takes 10, a product as long as given, everything else nothing.
template <int Product>
struct priced {
  template <class Graph>
  static constexpr double microseconds(const Graph& g, int i) {
    if (sw::communicates(sw::detail::transition_at(g, i))) return 10;
    return g.nodes[i].op == op_code::einsum ? Product : 0;
  }
};
using by_hand = priced<4>;

std::vector<std::string> ops(const graph& g) {
  std::vector<std::string> r;
  for (int i = 0; i < g.node_count; ++i)
    if (g.nodes[i].op != op_code::input)
      r.push_back(communicates_at(g, i)              ? "start"
                  : g.nodes[i].op == op_code::einsum ? "product"
                                                     : sw::name_of(g.nodes[i].op));
  return r;
}
using names = std::vector<std::string>;

TEST_CASE("overlap passes: kernels fill the time of a collective, and no more of them than that") {
  const graph g = two_sums_and_products().g;
  // two products cover 8 of the first collective's 10; what is left is no more than half of another one
  const graph filled = moved<sw::reorder_compute_for_overlap<by_hand>, sw::sink_waits>(g);
  CHECK(ops(filled) == names{"start", "scale", "product", "product", "start", "wait", "wait", "add", "product", "product",
                             "product", "product", "add"});
  const graph raised = moved<sw::reorder_compute_for_overlap<by_hand>, sw::sink_waits, sw::raise_comms>(g);
  CHECK(ops(raised) == names{"start", "scale", "start", "product", "product", "wait", "wait", "add", "product", "product",
                             "product", "product", "add"});
  // at 5 a product, two cover it; at 6, one leaves more than half of another
  CHECK(ops(moved<sw::reorder_compute_for_overlap<priced<5>>, sw::sink_waits>(g)) == ops(filled));
  CHECK(ops(moved<sw::reorder_compute_for_overlap<priced<6>>, sw::sink_waits>(g)) == ops(filled));
  CHECK(ops(moved<sw::reorder_compute_for_overlap<priced<7>>, sw::sink_waits>(g)) ==
        names{"start", "scale", "product", "start", "wait", "wait", "add", "product", "product", "product", "product",
              "product", "add"});
  CHECK(ops(moved<sw::reorder_compute_for_overlap<priced<20>>, sw::sink_waits>(g)) ==
        names{"start", "scale", "start", "wait", "wait", "add", "product", "product", "product", "product", "product",
              "product", "add"});
  CHECK(ops(moved<sw::schedule_comm_wait>(g)) == names{"start", "scale", "start", "wait", "wait", "add", "product",
                                                       "product", "product", "product", "product", "product", "add"});
}

TEST_CASE("overlap passes: a collective that nothing uses, and a wait that is too far from its own, are found") {
  scene s = two_sums_and_products();
  const sw::op_attr sum{{0, sw::pack(sw::replicate_value()), 0, 0, 0, 0}};
  graph g = s.g;
  {
    sw::builder e = g.edit();
    const int lone = append(e, op_code::redistribute, {0}, sum);
    append(e, op_code::wait, {lone});
    g.finish(e);
  }
  sw::pass_sequence<graph> passes;
  const auto unused = passes.apply(sw::entry_of<sw::schedule_comm_wait, graph>(), g);
  CHECK(unused.what.what == sw::problem::comm_no_output);
  CHECK(unused.text.find("Found a allreduce that has zero outputs/users") != std::string::npos);

  graph near = s.g, far = s.g;
  for (graph* f : {&near, &far}) {
    sw::builder e = f->edit();
    int v = s.second;
    for (int k = 0; k < (f == &near ? 4 : 5); ++k) v = append(e, op_code::permute, {v}, {{1, 0, 0, 0, 0, 0}});
    const int w = append(e, op_code::wait, {v});
    f->finish(e);
    f->outputs[f->output_count++] = w;
  }
  CHECK(!passes.apply(sw::entry_of<sw::schedule_comm_wait, graph>(), near));
  sw::pass_sequence<graph> again;
  const auto lost = again.apply(sw::entry_of<sw::schedule_comm_wait, graph>(), far);
  CHECK(lost.what.what == sw::problem::comm_wait_too_far);
  CHECK(lost.text.find("The wait nodes are too far away from the comm node") != std::string::npos);
}

}  // namespace
