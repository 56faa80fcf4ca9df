// SPDX-License-Identifier: Apache-2.0
// Nodes with several results: what verify holds of them, where the memory plan puts their results, and what passes keep, on graphs
// written node by node.
#include <doctest/doctest.h>

#include <custom_results.hpp>
#include <graph_maker.hpp>
#include <shardwise/graph/text/render.hpp>
#include <shardwise/graph/verify/verify.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/pass/analysis/run_time.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/framework/dce.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/runtime/host/backend.hpp>

namespace {

namespace sw = shardwise;
using sw::op_code;
using sw::problem;

template <int Nodes>
struct maker : test::graph_maker<Nodes> {
  using base = test::graph_maker<Nodes>;
  using base::b;

  int lines(int x, const sw::custom_operation& o = described::lines) {
    sw::node n = sw::empty_node;
    b.set_operation(n, &o);
    n.inputs = 1;
    n.in[0] = x;
    n.spec = b.intern(sw::infer(o.record, {}, &b.specs[b.nodes[x].spec], 1).out);
    return b.append(n);
  }
  int item(int of, int k) {
    const sw::spec x = b.specs[b.nodes[b.nodes[of].in[0]].spec];
    return b.append(sw::item_node(of, k, b.intern(sw::infer(described::lines.record, {}, &x, 1, k).out), -1));
  }
};

// input, lines, its three results, what reads them.
struct whole {
  maker<16> m;
  int x = m.leaf(op_code::input, sw::shard_value(0)), all = m.lines(x);
  int e = m.item(all, 0), s = m.item(all, 1), where = m.item(all, 2);
  int last = m.apply(op_code::tanh, e);
};

TEST_CASE("several results: verify admits each result once, read by getitem alone") {
  whole w;
  const auto g = w.m.finish(w.last, w.s, w.where);
  CHECK(!sw::verify(g));
  const auto broken = [&](auto change) {
    auto h = g;
    change(h);
    return sw::verify(h);
  };
  const auto is = [](const sw::finding& f, problem p, int node) { return f.what == p && f.operand == node; };
  CHECK(is(broken([&](auto& h) { h.nodes[w.last].in[0] = w.all; }), problem::graph_results, w.last));  // read as a tensor
  CHECK(is(broken([&](auto& h) { h.outputs[0] = w.all; }), problem::graph_results, w.all));            // given out as one
  CHECK(is(broken([&](auto& h) { h.nodes[w.s].in[0] = w.x; }), problem::graph_results, w.s));  // of one with one result
  CHECK(is(broken([&](auto& h) { h.nodes[w.s].in[0] = w.e; }), problem::graph_results, w.s));  // of a result
  CHECK(is(broken([&](auto& h) { h.nodes[w.s].a.v[0] = 3; }), problem::graph_results, w.s));   // there are three
  CHECK(is(broken([&](auto& h) { h.nodes[w.s].a.v[0] = -1; }), problem::graph_results, w.s));
  CHECK(is(broken([&](auto& h) { h.nodes[w.where].spec = h.nodes[w.s].spec; }), problem::graph_results,
           w.where));  // not its spec
  CHECK(is(broken([&](auto& h) {
             h.nodes[w.where].a.v[0] = 1;
             h.nodes[w.where].spec = h.nodes[w.s].spec;
           }),
           problem::graph_results, w.where));  // named twice
  CHECK(is(broken([&](auto& h) {
             h.nodes[w.s].inputs = 2;
             h.nodes[w.s].in[1] = w.x;
           }),
           problem::graph_results, w.s));
  CHECK(is(broken([&](auto& h) { h.nodes[w.e].in[0] = w.last; }), problem::graph_cycle, w.e));
}

// The same first result, the other two in the other order.
constexpr sw::outcome swapped_shape(const sw::op_attr& a, const sw::spec* in, int n, int result) {
  return described::shape(a, in, n, result == 0 ? 0 : 3 - result);
}
inline constexpr sw::custom_operation swapped{
    .name = "swapped",
    .operands = 1,
    .record =
        sw::operations::by_rows(&swapped_shape, &described::rows, &sw::operations::refuse_with<problem::custom_placements>,
                                -1, sw::element_rule::real, sw::operand_choice::kept, sw::recomputing::cheap, 3),
    .adjoint = &sw::autodiff::unknown};

TEST_CASE("several results: what verify remembers of one operation's results says nothing of another's") {
  maker<16> m;
  const int x = m.leaf(op_code::input, sw::shard_value(0)), one = m.lines(x), sums = m.item(one, 1);
  const int other = m.lines(x, swapped), again = m.lines(x);
  const int wrong = m.item(other, 1), right = m.item(again, 1);
  const auto g = m.finish(sums, wrong, right);
  const sw::finding f = sw::verify(g);
  CHECK(f.what == problem::graph_results);
  CHECK(f.operand == wrong);
  auto mended = g;
  mended.nodes[wrong].a.v[0] = 2;
  CHECK(!sw::verify(mended));
}

TEST_CASE("several results: each has storage of its own from where its node's operand stands, and that one has none") {
  for (const bool late : {false, true}) {
    maker<16> m;
    const int x = m.leaf(op_code::input, sw::shard_value(0)), y = m.apply(op_code::tanh, x), all = m.lines(y);
    const int e = m.item(all, 0);
    int s = late ? -1 : m.item(all, 1);
    const int between = m.apply(op_code::relu, e), more = m.apply(op_code::tanh, between);
    if (late) s = m.item(all, 1);  // its storage is taken long before
    const auto g = m.finish(more, s);
    CHECK(!sw::verify(g));
    const auto plan = sw::passes::plan_memory<sw::host_backend>::plan_of(g, 0);
    CHECK(plan.bytes[all] == 0);
    CHECK(plan.bytes[e] > 0);
    CHECK(plan.bytes[s] > 0);
    const auto apart = [&](int a, int b) {
      const auto first = plan.offset[plan.owner[a]], second = plan.offset[plan.owner[b]];
      return first + plan.bytes[plan.owner[a]] <= second || second + plan.bytes[plan.owner[b]] <= first;
    };
    CHECK(plan.owner[e] == e);
    CHECK(plan.owner[s] == s);
    CHECK(apart(e, s));
    CHECK(apart(e, y));  // read by the kernel that writes them
    CHECK(apart(s, y));
    CHECK(apart(s, between));
    CHECK(apart(s, more));
    CHECK(plan.owner[between] == e);  // which nothing reads afterwards: it is overwritten
  }
}

TEST_CASE("several results: one that nobody reads goes, and so does the node when all have gone") {
  whole w;
  auto g = w.m.finish(w.last);
  sw::passes::remove_dead(g);
  CHECK(g.node_count == 4);
  CHECK(sw::find_node(g, "getitem") == 2);
  whole v;
  auto h = v.m.finish(v.x);
  sw::passes::remove_dead(h);
  CHECK(h.node_count == 1);
}

TEST_CASE("several results: merge_common leaves one node and one getitem for each result, also across an update") {
  maker<16> m;
  const int p = m.leaf(op_code::param, sw::replicate_value()), x = m.leaf(op_code::input, sw::replicate_value());
  const int first = m.lines(x), a = m.item(first, 0), second = m.lines(x), b = m.item(second, 0), c = m.item(second, 1);
  const int update = m.apply(op_code::sgd, p, a);
  const int d = m.item(first, 1);
  const int sum = m.apply(op_code::add, a, b);
  auto g = m.finish(sum, c, d);
  CHECK(!sw::verify(g));
  CHECK(g.nodes[update].op == op_code::sgd);
  CHECK(!sw::merge_common::apply(g));
  CHECK(!sw::verify(g));
  int nodes = 0, items = 0;
  for (int i = 0; i < g.node_count; ++i) {
    nodes += sw::has_results(g, i) ? 1 : 0;
    items += g.nodes[i].op == op_code::getitem ? 1 : 0;
  }
  CHECK(nodes == 1);
  CHECK(items == 2);
  CHECK(g.outputs[1] == g.outputs[2]);
}

TEST_CASE("several results: the text names them as torch.fx does, and they cost nothing") {
  whole w;
  const auto g = w.m.finish(w.last, w.s);
  const std::string text = sw::to_text(g);
  CHECK(text.find("%lines = lines(%input) (4, 6)") != std::string::npos);
  CHECK(text.find("%getitem_1 = getitem(%lines, 1) (4) ") != std::string::npos);
  CHECK(sw::run_time<>::microseconds(g, w.e) == 0);
  CHECK(!sw::passes::is_kernel(g, w.e));
  CHECK(sw::passes::is_kernel(g, w.all));
  // what it reads and all that it writes, of the rank with 2 rows of 6
  CHECK(sw::bytes_of(g, w.all) == 4 * (12 + 12 + 2 + 2));
}

// Forward: y = sum(tanh(exp) + ...); the backward pass reads result 0 and the sums.
TEST_CASE(
    "several results: what is kept for the backward pass is results, and computing one again computes the node again") {
  maker<32> m;
  const int x = m.leaf(op_code::input, sw::replicate_value());
  const int all = m.lines(x), e = m.item(all, 0), s = m.item(all, 1);
  const int t = m.apply(op_code::tanh, e), loss = m.apply(op_code::sum, {{3, 0, 0, 0, 0, 0}}, {t});
  const int back = m.apply(op_code::mul, e, t), rows = m.apply(op_code::sum, {{2, 0, 0, 0, 0, 0}}, {back}),
            use = m.apply(op_code::mul, rows, s);
  const auto g = m.finish(loss, use);
  CHECK(!sw::verify(g));
  sw::passes::solve_cut<100>::progress<32> st;
  sw::passes::solve_cut<100>::solve(st, g, sw::stage_work::all());
  CHECK(st.p.kept[all] == 0);
  auto h = g;
  CHECK(!sw::rematerialise<0>::apply(h));  // nothing but the input is kept
  CHECK(!sw::verify(h));
  int nodes = 0;
  for (int i = 0; i < h.node_count; ++i) nodes += sw::has_results(h, i) ? 1 : 0;
  CHECK(nodes == 2);
}

TEST_CASE("several results: a node that must not be computed twice keeps its results by their own bytes") {
  maker<32> m;
  static constexpr sw::custom_operation once = [] {
    sw::custom_operation o = described::lines;
    o.name = "once";
    o.record.recompute = sw::recomputing::never;
    return o;
  }();
  const int x = m.leaf(op_code::input, sw::replicate_value());
  const int all = m.lines(x, once), e = m.item(all, 0), s = m.item(all, 1);
  const int loss = m.apply(op_code::sum, {{3, 0, 0, 0, 0, 0}}, {m.apply(op_code::tanh, e)});
  const int use = m.apply(op_code::mul, s, s);
  const auto g = m.finish(loss, use);
  sw::passes::solve_cut<100>::progress<32> st;
  sw::passes::solve_cut<100>::solve(st, g, sw::stage_work::all());
  CHECK(st.p.kept[s] == 1);
  CHECK(st.p.kept[e] == 0);  // the backward pass has no use for it
  CHECK(st.p.kept[all] == 0);
  CHECK(st.p.kept_bytes(g) == 4 * 4);

  // both: the node itself, whose spec is that of the first, is no cheaper way
  maker<32> both;
  const int y = both.leaf(op_code::input, sw::replicate_value());
  const int node = both.lines(y, once), first = both.item(node, 0), second = both.item(node, 1);
  const int total = both.apply(op_code::sum, {{3, 0, 0, 0, 0, 0}}, {both.apply(op_code::tanh, first)});
  const int squares = both.apply(op_code::mul, first, first), sums = both.apply(op_code::mul, second, second);
  const auto h = both.finish(total, squares, sums);
  sw::passes::solve_cut<100>::progress<32> cut;
  sw::passes::solve_cut<100>::solve(cut, h, sw::stage_work::all());
  CHECK(cut.p.kept[first] == 1);
  CHECK(cut.p.kept[second] == 1);
  CHECK(cut.p.kept[node] == 0);
  CHECK(cut.p.kept_bytes(h) == 4 * (24 + 4));
}

}  // namespace
