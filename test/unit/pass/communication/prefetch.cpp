// SPDX-License-Identifier: Apache-2.0
// prefetch: what is issued when, how much more memory that takes, and that the bits stay: on random steps, and on steps of
// sharded groups.
#include <shardwise/graph/text/render.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/prefetch.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <batched.hpp>
#include <memory>
#include <random_step.hpp>

namespace {

namespace sw = shardwise;
using sw::op_code;

template <int Ranks>
struct fibre : sw::axis<Ranks> {};
template <int Ranks>
using mesh = sw::mesh<fibre<Ranks>>;

constexpr int capacity = 400;
using graph = sw::graph<capacity, 160>;
using step = test::sharded_step<capacity>;

graph of(const step& s) {
  graph g;
  sw::copy_into(g, s.g);
  return g;
}
template <class Pass>
void apply(graph& g) {
  const sw::finding f = Pass::apply(g);
  REQUIRE(f.what == sw::problem::none);
  const sw::finding v = sw::verify(g);
  REQUIRE(v.what == sw::problem::none);
}
template <class... Pass>
graph made(graph g) {
  (apply<Pass>(g), ...);
  return g;
}

// G gather, S scattered sum, A other sums, a batch as one, and the module's number; small letters: the first wait for one; k: a
// module's kernels in a row, u: updates.
char letter(sw::transition t) {
  return t == sw::transition::all_gather ? 'G' : t == sw::transition::reduce_scatter ? 'S' : 'A';
}
std::string order(const graph& g) {
  std::string s;
  std::vector<int> seen(static_cast<std::size_t>(g.node_count), 0);
  std::string kernel;
  for (int i = 0; i < g.node_count; ++i) {
    const sw::node& n = g.nodes[i];
    const sw::transition t = sw::detail::transition_at(g, i);
    const std::string scope = std::to_string(n.scope);
    if (sw::communicates(t)) {
      if (!sw::joins_batch(g, i)) s += letter(t) + scope + " ";
      kernel = "";
    } else if (n.op == op_code::wait) {
      const int c = sw::batch_begin(g, sw::collective_of(g, i));
      if (seen[static_cast<std::size_t>(c)]++ != 0) continue;
      s += static_cast<char>(letter(sw::detail::transition_at(g, c)) - 'A' + 'a') + scope + " ";
      kernel = "";
    } else if (sw::runs_kernel(n.op) && !sw::is_update(n.op) && kernel != scope) {
      kernel = scope;
      s += "k" + scope + " ";
    } else if (sw::is_update(n.op) && kernel != "u") {
      kernel = "u";
      s += "u ";
    }
  }
  return s;
}

std::int64_t peak(const graph& g) { return sw::passes::plan_memory<sw::host_backend>::plan_of(g, 0).peak; }

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

TEST_CASE("prefetch: a group is gathered while those before it compute, and its sums travel while those behind it do") {
  const graph written = made<sw::batch_collectives>(of(step(2, 3, 3)));
  CHECK(order(written) == "G0 k0 G1 k1 G2 k2 G2 k2 S2 G1 k1 S1 G0 k0 S0 u ");
  CHECK(order(made<sw::prefetch<>>(written)) ==
        "G0 G1 g0 k0 G2 g1 k1 g2 k2 G2 k2 G1 g2 k2 S2 G0 g1 k1 s2 S1 g0 k0 s1 S0 s0 u ");
  CHECK(order(made<sw::prefetch<2>>(written)) ==
        "G0 G1 G2 g0 k0 g1 k1 g2 k2 G2 G1 k2 G0 g2 k2 S2 g1 k1 s2 S1 g0 k0 s1 S0 s0 u ");
  // what stays gathered is gathered once
  CHECK(order(made<sw::batch_collectives, sw::prefetch<>>(of(step(2, 3, 3, false)))) ==
        "G0 G1 g0 k0 G2 g1 k1 g2 k2 S2 k1 s2 S1 k0 s1 S0 s0 u ");
}
TEST_CASE("prefetch: gathers that stand too early are issued later") {
  const graph written = made<sw::batch_collectives>(of(step(2, 4, 2)));
  const graph early = made<sw::raise_comms>(written);
  CHECK(order(early).substr(0, 12) == "G0 G1 G2 G3 ");
  for (const graph* g : {&written, &early}) {
    CHECK(order(made<sw::prefetch<1>>(*g)) == order(made<sw::prefetch<1>>(written)));
    CHECK(order(made<sw::prefetch<2>>(*g)) == order(made<sw::prefetch<2>>(written)));
  }
  CHECK(order(made<sw::prefetch<1>, sw::prefetch<1>>(written)) == order(made<sw::prefetch<1>>(written)));
}

// Most gathers that are issued and not waited for.
int most_ahead(const graph& g) {
  int now = 0, most = 0;
  std::vector<char> waited(static_cast<std::size_t>(g.node_count), 0);
  for (int i = 0; i < g.node_count; ++i) {
    if (sw::detail::transition_at(g, i) == sw::transition::all_gather && !sw::joins_batch(g, i))
      most = std::max(most, ++now);
    if (g.nodes[i].op != op_code::wait) continue;
    const int c = sw::batch_begin(g, sw::collective_of(g, i));
    if (sw::detail::transition_at(g, c) != sw::transition::all_gather || waited[static_cast<std::size_t>(c)]) continue;
    waited[static_cast<std::size_t>(c)] = 1;
    --now;
  }
  return most;
}

template <int N>
void check_memory() {
  for (const int groups : {2, 3, 5})
    for (const bool regather : {false, true}) {
      const step s(2, groups, 3, regather);
      const graph before = made<sw::batch_collectives>(of(s)), after = made<sw::prefetch<N>>(before);
      CHECK(most_ahead(after) == std::min(N + 1, groups));  // the one that is about to be used, too
      // a group's gathered parameters and its gradients take the same
      std::int64_t most = 0;
      for (const auto& group : s.gathers) {
        std::int64_t bytes = 0;
        for (const int i : group) bytes += sw::passes::align_up(sw::numel(s.g.spec_of(i)) * 4);
        most = std::max(most, bytes);
      }
      CHECK(peak(after) <= peak(before) + (N + 1) * most);
    }
}
TEST_CASE("prefetch: at most so many groups more are gathered, and one group's gradients are kept") {
  check_memory<1>();
  check_memory<2>();
  check_memory<4>();
}

// What is gathered is as it was before a write, or behind it, wherever the gather is issued.
struct writes {
  graph g;
  writes() {
    sw::builder b = g.edit();
    const std::int32_t sizes[] = {2};
    const auto add = [&](op_code op, const sw::op_attr& a, std::initializer_list<int> of, sw::placement leaf = {}) {
      sw::node n = sw::empty_node;
      n.op = op;
      n.a = a;
      n.f = 1;
      sw::spec in[sw::max_inputs]{};
      for (const int x : of) {
        in[n.inputs] = b.specs[b.nodes[x].spec];
        n.in[n.inputs++] = x;
      }
      if (n.inputs == 0) {
        sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
        s.rank = 1;
        s.extent[0] = 5;
        sw::make_contiguous(s);
        s.place[0] = leaf;
        n.spec = b.intern(s);
      } else {
        n.spec = sw::is_update(op) ? b.nodes[n.in[0]].spec : b.intern(sw::infer(op, a, in, n.inputs).out);
      }
      return b.append(n);
    };
    const auto gather = [&](int x) {
      return add(op_code::redistribute, {{0, sw::pack(sw::replicate_value()), 0, 0, 0, 0}}, {x});
    };
    const int p = add(op_code::param, {{0, 0, 0, 0, 0, 0}}, {}, sw::shard_value(0));
    const int q = add(op_code::param, {{1, 0, 0, 0, 0, 0}}, {}, sw::shard_value(0));
    const int grad = add(op_code::input, {{0, 0, 0, 0, 0, 0}}, {}, sw::shard_value(0));
    const int old = gather(p), first = gather(q);
    const int x = add(op_code::tanh, {}, {first});
    const int written = add(op_code::sgd, {}, {p, grad});
    const int y = add(op_code::mul, {}, {x, old});
    const int z = add(op_code::mul, {}, {y, gather(written)});
    g.finish(b);
    g.outputs[g.output_count++] = z;
  }
};

template <int Ranks>
void check_bits(int graphs) {
  std::vector<graph> before;
  for (int seed = 0; seed < graphs; ++seed) {
    before.emplace_back();
    sw::copy_into(before.back(), test::random_step<160, 40>(static_cast<std::uint64_t>(seed), Ranks, 6, seed % 2 == 0));
    sw::passes::remove_dead(before.back());
  }
  for (const int groups : {1, 2, 3}) before.push_back(of(step(Ranks, groups, 4)));
  before.push_back(of(step(Ranks, 3, 2, false)));
  if (Ranks == 2) before.push_back(writes().g);
  int moved = 0, wrong = 0;
  for (const graph& g : before) {
    const graph after[] = {
        made<sw::prefetch<1>>(g), made<sw::batch_collectives, sw::prefetch<1>>(g),
        made<sw::batch_collectives, sw::prefetch<3>>(g), made<sw::batch_collectives, sw::raise_comms, sw::prefetch<2>>(g),
        made<sw::batch_collectives, sw::prefetch<2>, sw::reorder_compute_for_overlap<>, sw::sink_waits>(g)};
    std::vector<int> different(static_cast<std::size_t>(Ranks), 0);
    sw::launch<mesh<Ranks>>([&](auto& rank) {
      const outcome_bits want = run_steps(rank, g);
      for (const graph& a : after) different[static_cast<std::size_t>(rank.index())] += run_steps(rank, a) == want ? 0 : 1;
    });
    for (const int d : different) wrong += d;
    if (wrong > 0) {
      INFO(sw::to_text(g) << "\n" << sw::to_text(after[1]));
      REQUIRE(wrong == 0);
    }
    for (const graph& a : after) REQUIRE(test::computed(a) == test::computed(g));
    moved += order(after[0]) != order(g) ? 1 : 0;
  }
  if (Ranks > 1) CHECK(moved > graphs / 4);
}
TEST_CASE("prefetch: the same bits on one rank") { check_bits<1>(5); }
TEST_CASE("prefetch: the same bits on two ranks") { check_bits<2>(60); }
TEST_CASE("prefetch: the same bits on three ranks") { check_bits<3>(60); }
TEST_CASE("prefetch: the same bits on four ranks") { check_bits<4>(20); }
TEST_CASE("prefetch: the same bits on eight ranks") { check_bits<8>(4); }

// --- constants -------------------------------------------------------------------------------------------------------

template <int Seed>
struct random_source {
  static constexpr auto value = [] {
    auto g = test::random_step<120, 40>(Seed, 2, 4, false);
    sw::passes::remove_dead(g);
    return g;
  }();
};
template <class Pass, int Nodes, int Seed>
int different_from_run_time() {
  using graph_type = sw::graph<2 * decltype(random_source<Seed>::value)::node_capacity, 200>;
  const auto g = std::make_unique<graph_type>();
  sw::copy_into(*g, random_source<Seed>::value);
  REQUIRE(Pass::apply(*g).what == sw::problem::none);
  return sw::to_text(Pass::template in_stages<random_source<Seed>, Nodes>::value) == sw::to_text(*g) ? 0 : 1;
}
template <class Pass, int Seed>
void check_stages() {
  CHECK(different_from_run_time<Pass, 8, Seed>() == 0);
  CHECK(different_from_run_time<Pass, 100, Seed>() == 0);
  CHECK(different_from_run_time<Pass, 4000, Seed>() == 0);
}
TEST_CASE("prefetch: constants in stages of any size are the graphs made at run time") {
  check_stages<sw::prefetch<1>, 1>();
  check_stages<sw::prefetch<2>, 2>();
  check_stages<sw::batch_collectives, 1>();
  check_stages<sw::batch_collectives, 3>();
}

}  // namespace
