// SPDX-License-Identifier: Apache-2.0
// Batches of collectives: what verify holds of them, what the memory plan keeps for them, and what counts them once.
#include <shardwise/graph/verify/verify.hpp>
#include <shardwise/pass/analysis/communication.hpp>
#include <shardwise/pass/analysis/run_time.hpp>
#include <shardwise/pass/framework/dce.hpp>
#include <shardwise/pass/framework/sweep.hpp>
#include <shardwise/pass/memory/memory.hpp>

#include <doctest/doctest.h>

#include <batched.hpp>
#include <graph_maker.hpp>

namespace {

namespace sw = shardwise;
using sw::op_code;
using sw::problem;
using test::batch_at;

// Three shards gathered as one, then what reads them.
struct gathers {
  test::graph_maker<24> m;
  int a = m.leaf(op_code::param, sw::shard_value(0), 0), b = m.leaf(op_code::param, sw::shard_value(0), 1),
      c = m.leaf(op_code::param, sw::shard_value(1), 2);
  int early = m.apply(op_code::tanh, a);
  int wa = m.to(a, sw::reduced_value()), wb = m.to(b, sw::reduced_value()), wc = m.to(c, sw::reduced_value());
  int x = m.apply(op_code::tanh, wa), y = m.apply(op_code::tanh, wb), z = m.apply(op_code::tanh, wc);
  test::graph_maker<24>::graph_type g = m.finish(early, x, y, z);

  gathers() {
    for (const int i : {wa, wb, wc}) sw::set_batch(g.nodes[i], 1);
  }
};

template <class Graph, class Change>
sw::finding broken(const Graph& g, Change change) {
  Graph h = g;
  change(h);
  return sw::verify(h);
}
bool is_broken_at(const sw::finding& f, int node) { return f.what == problem::graph_batch && f.operand == node; }

TEST_CASE("batches: verify admits neighbours that are alike and independent, under rising numbers") {
  const gathers w;
  CHECK(!sw::verify(w.g));
  CHECK(test::batches_of(w.g) == std::vector<batch_at>{{w.wa, 3}});
  // two runs of one number, a number that falls, a negative one
  CHECK(is_broken_at(broken(w.g, [&](auto& h) { sw::set_batch(h.nodes[w.wb], 0); }), w.wc));
  CHECK(is_broken_at(broken(w.g, [&](auto& h) { sw::set_batch(h.nodes[w.wa], 2); }), w.wb));
  CHECK(is_broken_at(broken(w.g, [&](auto& h) { sw::set_batch(h.nodes[w.wa], -1); }), w.wa));
  CHECK(!broken(w.g, [&](auto& h) { sw::set_batch(h.nodes[w.wc], 2); }));
  // a batch of one is itself
  CHECK(!broken(w.g, [&](auto& h) {
    sw::set_batch(h.nodes[w.wb], 0);
    sw::set_batch(h.nodes[w.wc], 7);
  }));
}

TEST_CASE("batches: verify refuses members of different kinds, types, and those that read one another") {
  test::graph_maker<24> m;
  const int a = m.leaf(op_code::input, sw::shard_value(0), 0), p = m.leaf(op_code::input, sw::partial_value(), 1),
            d = m.leaf(op_code::input, sw::shard_value(0), 2, sw::dtype::f64);
  const int gather = m.to(a, sw::replicate_value()), sum = m.to(p, sw::replicate_value());
  const int scatter = m.to(p, sw::shard_value(0)), again = m.to(scatter, sw::replicate_value());
  const int other = m.to(a, sw::replicate_value()), wide = m.to(d, sw::replicate_value());
  const int exchange = m.to(a, sw::shard_value(1)), back = m.to(exchange, sw::shard_value(0));
  const int local = m.to(gather, sw::shard_value(0));
  const auto g = m.finish(sum, again, other, wide, back, local);
  REQUIRE(!sw::verify(g));
  const auto batched = [&](int x, int y) {
    return broken(g, [&](auto& h) {
      sw::set_batch(h.nodes[x], 1);
      sw::set_batch(h.nodes[y], 1);
    });
  };
  CHECK(is_broken_at(batched(gather, sum), sum));                                             // another transition
  CHECK(is_broken_at(batched(other, wide), wide));                                            // another type
  CHECK(is_broken_at(batched(exchange, back), back));                                         // reads the one before
  CHECK(is_broken_at(batched(scatter, again), again));                                        // both
  CHECK(is_broken_at(broken(g, [&](auto& h) { sw::set_batch(h.nodes[local], 1); }), local));  // moves nothing
  CHECK(!batched(again, other));
}

TEST_CASE("batches: dead members leave a batch, the others stay in it") {
  gathers w;
  w.g.outputs[2] = w.x;
  sw::passes::remove_dead(w.g);
  CHECK(!sw::verify(w.g));
  CHECK(test::batches_of(w.g) == std::vector<batch_at>{{w.wa, 2}});
}

TEST_CASE("batches: an order counts a batch once, its bytes are its members'") {
  const gathers w;
  const auto with = sw::passes::order_of(w.g), without = sw::passes::order_of(test::without_batches(w.g));
  CHECK(with.collectives == 1);
  CHECK(without.collectives == 3);
  CHECK(with.members == 3);
  CHECK(with.order_hash != without.order_hash);
  const auto t = sw::passes::traffic_of<3>(w.g), u = sw::passes::traffic_of<3>(test::without_batches(w.g));
  const int origin[sw::max_axes]{};
  CHECK(t.collectives == 1);
  CHECK(t.count == 2);
  CHECK(sw::passes::sent_bytes(w.g, t, 0, origin) == sw::passes::sent_bytes(w.g, u, 0, origin));
}

TEST_CASE("batches: the model charges one latency") {
  const gathers w;
  const auto alone = test::without_batches(w.g);
  using model = sw::run_time<>;
  const auto sum = [&](const auto& g) {
    return model::microseconds(g, w.wa) + model::microseconds(g, w.wb) + model::microseconds(g, w.wc);
  };
  const double latency = sw::cost_model::start + sw::cost_model::hop;
  CHECK(sum(w.g) == doctest::Approx(sum(alone) - 2 * latency));
  CHECK(model::microseconds(w.g, w.wb) > 0);
}

// --- memory ----------------------------------------------------------------------------------------------------------

struct empty_backend {
  static constexpr std::int64_t none = 0;
};
template <class Graph>
auto planned(const Graph& g) {
  return sw::passes::plan_memory<empty_backend>::plan_of(g, 0);
}
// Whether two values' bytes meet.
template <class Plan>
bool meet(const Plan& p, int a, int b) {
  return p.offset[a] < p.offset[b] + p.bytes[b] && p.offset[b] < p.offset[a] + p.bytes[a];
}

// Two values computed, gathered in one batch, and read: member by member the second result would be taken where the first
// operand has died.
struct computed_operands {
  test::graph_maker<24> m;
  int x = m.leaf(op_code::input, sw::shard_value(0));
  int a = m.apply(op_code::tanh, x), b = m.apply(op_code::exp, x);
  int ga = m.to(a, sw::replicate_value()), gb = m.to(b, sw::replicate_value());
  int u = m.apply(op_code::tanh, ga), v = m.apply(op_code::tanh, gb);
  test::graph_maker<24>::graph_type g = m.finish(u, v);
  computed_operands() {
    sw::set_batch(g.nodes[ga], 1);
    sw::set_batch(g.nodes[gb], 1);
  }
};

TEST_CASE("batches: all results are stored from the first member on, all operands until the last") {
  const computed_operands w;
  REQUIRE(!sw::verify(w.g));
  const auto p = planned(w.g);
  for (const int operand : {w.a, w.b})
    for (const int made : {w.ga, w.gb}) CHECK(!meet(p, operand, made));
  CHECK(!meet(p, w.ga, w.gb));
  CHECK(p.last_use[w.a] == w.gb);
  CHECK(p.last_use[w.b] == w.gb);
}

// A result that dies at once and an operand that two members read give back what they took, once: rounds of a program use the same
// storage again.
TEST_CASE("batches: storage is given back once") {
  const auto peak_of = [](int rounds) {
    test::graph_maker<60> m;
    const int x = m.leaf(op_code::input, sw::shard_value(0));
    int last = x;
    for (int round = 0; round < rounds; ++round) {
      const int a = m.apply(op_code::tanh, last), b = m.apply(op_code::exp, last);
      const int members[] = {m.to(a, sw::replicate_value()), m.to(a, sw::reduced_value()), m.to(b, sw::replicate_value())};
      for (const int i : members) sw::set_batch(m.b.nodes[i], round + 1);
      last = m.to(m.apply(op_code::tanh, members[0]), sw::shard_value(0));
    }
    const auto g = m.finish(last);
    REQUIRE(!sw::verify(g));
    return planned(g).peak;
  };
  CHECK(peak_of(2) == peak_of(7));
}

// What one wait waits for is the whole batch: until the last wait all operands are kept.
TEST_CASE("batches: operands are kept until the batch has been waited for") {
  test::graph_maker<24> m;
  const int x = m.leaf(op_code::input, sw::shard_value(0));
  const int a = m.apply(op_code::tanh, x), c = m.apply(op_code::exp, x);
  const int ga = m.to(a, sw::replicate_value()), gc = m.to(c, sw::replicate_value());
  const int meanwhile = m.apply(op_code::tanh, x), more = m.apply(op_code::exp, meanwhile);
  const int wa = m.apply(op_code::wait, ga);
  const int u = m.apply(op_code::tanh, wa), v = m.apply(op_code::tanh, gc);
  auto g = m.finish(u, v, more);
  sw::set_batch(g.nodes[ga], 1);
  sw::set_batch(g.nodes[gc], 1);
  REQUIRE(!sw::verify(g));
  const auto p = planned(g);
  CHECK(p.last_use[a] == wa);
  CHECK(p.last_use[c] == wa);  // nobody waits for its gather, but that ends with the other one
  for (const int operand : {a, c})
    for (const int later : {meanwhile, more}) CHECK(!meet(p, operand, later));
}

}  // namespace
