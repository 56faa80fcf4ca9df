// SPDX-License-Identifier: Apache-2.0
// The closure over users: on constants and on graphs made while running, against reachability by definition.
#include <shardwise/graph/text/text.hpp>
#include <shardwise/module/hana.hpp>
#include <shardwise/pass/analysis/descendants.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cstdint>
#include <initializer_list>
#include <random>
#include <vector>

namespace {

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using plan = sw::plan<sw::data_parallel<dp>>;

template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, first),
                           (sw::linear<6, 4, sw::child<Bound, 1>>, second));
  constexpr auto forward(const auto& x) const { return second(sw::relu(first(x))); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
using step = sw::train_step<model, task, plan, mesh, sw::adam<>>;
struct source {
  static constexpr const auto& value = step::program;
};

// Reached by definition: a path of users from a parent.
template <class Graph>
bool reaches(const Graph& g, int from, int to) {
  if (from == to) return true;
  for (int i = from + 1; i <= to; ++i)
    for (int k = 0; k < g.nodes[i].inputs; ++k)
      if (g.nodes[i].in[k] == from && reaches(g, i, to)) return true;
  return false;
}

template <class Graph>
void check_closure(const Graph& g, const std::vector<int>& parents) {
  const auto found = sw::find_all_descendants(g, parents.data(), static_cast<int>(parents.size()));
  CHECK(!found.error);
  CHECK(std::is_sorted(found.begin(), found.end()));
  for (int i = 0; i < g.node_count; ++i) {
    const bool want = std::any_of(parents.begin(), parents.end(), [&](int p) { return reaches(g, p, i); });
    CHECK(found.contains(i) == want);
  }
  CHECK(sw::is_leaf_subgraph(g, found));
  // without its last member, the set is a leaf only if no member has that one as its user
  if (found.count < 2) return;
  auto shorter = found;
  const int last = shorter.id[--shorter.count];
  bool used = false;
  for (int k = 0; k < g.nodes[last].inputs; ++k) used = used || shorter.contains(g.nodes[last].in[k]);
  CHECK(sw::is_leaf_subgraph(g, shorter) == !used);
}

constexpr int first_sum = sw::find_node(source::value, "all_reduce");
constexpr int second_sum = sw::find_node(source::value, "all_reduce_1");
static_assert(first_sum >= 0 && second_sum > first_sum);
using moved = sw::all_descendants<source, second_sum, first_sum>;
static_assert(!moved::value.error && moved::value.contains(first_sum) && moved::value.contains(second_sum));
static_assert(sw::is_leaf_subgraph(source::value, moved::value));
static_assert(!sw::all_descendants<source, first_sum>::value.contains(second_sum));
// A parameter's user is not in the set of the parameter alone.
static_assert(!sw::is_leaf_subgraph(source::value, std::initializer_list<int>{sw::find_node(source::value, "param")}));
static_assert(sw::find_all_descendants(source::value, nullptr, 0).error.what == sw::problem::descendants_of_nothing);
// What is marked is what is listed, in program order; a parent that there is not is named, and what there is.
constexpr bool marks_what_it_lists() {
  bool in[std::remove_cvref_t<decltype(step::program)>::node_capacity]{};
  const int parents[] = {second_sum, first_sum};
  if (sw::mark_descendants(source::value, parents, 2, in)) return false;
  const sw::node_list<std::remove_cvref_t<decltype(step::program)>::node_capacity> listed = moved::value;
  int k = 0;
  for (int i = 0; i < source::value.node_count; ++i)
    if (in[i] != listed.contains(i) || (in[i] && listed.id[k++] != i)) return false;
  return k == listed.count && listed.end() - listed.begin() == k && !listed.contains(-1);
}
static_assert(marks_what_it_lists());
constexpr bool refuses_parent(int parent) {
  bool in[std::remove_cvref_t<decltype(step::program)>::node_capacity]{};
  const int parents[] = {first_sum, parent};
  const sw::finding f = sw::mark_descendants(source::value, parents, 2, in);
  return f.what == sw::problem::descendants_of_nothing && f.have == parent && f.want == source::value.node_count;
}
static_assert(refuses_parent(-1) && refuses_parent(source::value.node_count));

TEST_CASE("spmd passes: descendants of the first reduced gradients of a step") {
  // each node of the set depends on one of the two reductions: the losses' sums and the updates they feed
  check_closure(step::program, {first_sum, second_sum});
  int updates = 0;
  for (const int i : moved::value) updates += sw::is_update(step::program.nodes[i].op) ? 1 : 0;
  CHECK(updates >= 1);
}

TEST_CASE("spmd passes: descendants on graphs made at run time") {
  std::mt19937 random(7);
  for (int round = 0; round < 100; ++round) {
    sw::graph<24, 1> g;
    sw::builder b = g.edit();
    const int spec = b.intern(sw::spec{});
    for (int i = 0; i < 24; ++i) {
      sw::node n = sw::empty_node;
      n.op = i < 2 ? sw::op_code::input : sw::op_code::add;
      n.inputs = i < 2 ? 0 : 2;
      n.spec = spec;
      for (int k = 0; k < n.inputs; ++k) n.in[k] = std::max(0, i - 1 - static_cast<int>(random() % 8));
      b.append(n);
    }
    g.finish(b);
    check_closure(g, {static_cast<int>(random() % 24), static_cast<int>(random() % 24)});
  }
}

TEST_CASE("spmd passes: descendants of no node, or of one that is not there") {
  const int wrong[] = {0, step::program.node_count};
  CHECK(sw::find_all_descendants(step::program, wrong, 0).error.what == sw::problem::descendants_of_nothing);
  const auto r = sw::find_all_descendants(step::program, wrong, 2);
  CHECK(r.error == sw::finding{sw::problem::descendants_of_nothing, -1, -1, -1, wrong[1], wrong[1]});
  CHECK(r.count == 0);
  CHECK(sw::sentence(r.error.what).substr(0, 59) == "shardwise: find_all_descendants: No parent nodes are given,");
}

}  // namespace
