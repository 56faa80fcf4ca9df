// SPDX-License-Identifier: Apache-2.0
// Programs whose collectives run beside their kernels: the bits of those that do not, in memory that nothing else uses
// meanwhile; and that they really run beside them.
#include <doctest/doctest.h>

#include <atomic>
#include <both_ways.hpp>
#include <chrono>
#include <gpt.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>

namespace {

using namespace test::gpt;
using namespace test;

template <class Optimizer, template <class, class> class Plan, class Pipeline>
using step_with = sw::train_step<transformer<dropout_sizes>::template model, language_task<dropout_sizes, batch, dp<2>>,
                                 typename Plan<dp<2>, tp<2>>::type, sw::mesh<dp<2>, tp<2>>, Optimizer, Pipeline>;

using plain = sw::pipeline<>;
using scheduled = sw::pipeline<sw::schedule_comm_wait>;
using overlapped = sw::pipeline<sw::reorder_compute_for_overlap<>, sw::sink_waits, sw::raise_comms>;
using expedited = sw::pipeline<sw::expedite_comms, sw::reorder_compute_for_overlap<>, sw::sink_waits, sw::raise_comms>;

// A collective's operand and result, from its start to its last wait, share no byte with what other nodes write.
template <class Step>
int disturbed() {
  const auto& g = Step::program;
  const auto& plan = Step::memory::value;
  int wrong = 0;
  for (int w = 0; w < g.node_count; ++w) {
    if (g.nodes[w].op != sw::op_code::wait) continue;
    const int c = sw::collective_of(g, w);
    if (c < 0) continue;
    for (const int mine : {plan.owner[g.nodes[c].in[0]], plan.owner[c]})
      for (int i = c + 1; i < w; ++i) {
        if (plan.owner[i] != i || plan.bytes[i] == 0 || i == mine || sw::is_leaf(g.nodes[i].op)) continue;
        const bool apart =
            plan.offset[i] + plan.bytes[i] <= plan.offset[mine] || plan.offset[mine] + plan.bytes[mine] <= plan.offset[i];
        wrong += apart ? 0 : 1;
      }
  }
  return wrong;
}

template <class Step>
constexpr int beside_kernels() {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i)
    if (Step::program.nodes[i].op == sw::op_code::wait && sw::collective_of(Step::program, i) >= 0) ++n;
  return n;
}

template <class Optimizer, template <class, class> class Plan, class Pipeline>
void check_step() {
  using before = step_with<Optimizer, Plan, plain>;
  using after = step_with<Optimizer, Plan, Pipeline>;
  static_assert(beside_kernels<before>() == 0 && beside_kernels<after>() == after::traffic.collectives);
  static_assert(before::traffic.collectives == after::traffic.collectives);
  static_assert((before::traffic.order_hash == after::traffic.order_hash) != std::is_same_v<Pipeline, expedited>);
  static_assert(after::memory_use::value.live() <=
                after::peak_bytes);  // until its wait a collective's operand lives, no longer
  CHECK(disturbed<after>() == 0);
  const auto want = train<before>(3);
  const auto got = train<after>(3);
  CHECK(got.losses == want.losses);
  CHECK(got.parameters == want.parameters);
  const auto poisoned = train<after>(3, sw::executor_checks::poison);
  CHECK(poisoned.losses == want.losses);
  CHECK(poisoned.parameters == want.parameters);
}

using clipped = sw::clip_norm<sw::adamw<true>>;
using unclipped = sw::adamw<true>;

TEST_CASE("pending: a step with scheduled waits is the step, bit by bit") {
  check_step<clipped, sequence_parallel, scheduled>();
}
TEST_CASE("pending: a step reordered for overlap is the step, bit by bit") {
  check_step<unclipped, tensor_parallel, overlapped>();
}

TEST_CASE("pending: a step with gradients summed as they come is the step, bit by bit") {
  check_step<unclipped, sequence_parallel, expedited>();
}

// --- beside, not before or behind --------------------------------------------------------------------------------------

struct pair : sw::axis<2> {};
using two = sw::mesh<pair>;
using R = sw::replicate;
using block = sw::dtensor_of<float, sw::shape<2, 4>, two, sw::shard<0>>;

std::atomic<bool> first_goes_on{false}, given_up{false};

// Rank 1 (whose block holds 1) comes to the collective only when rank 0 has gone past it.
struct late {
  template <class T>
  void operator()(std::span<T> out, std::span<const T> in) const {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    while (in[0] == 1 && !first_goes_on.load())
      if (std::chrono::steady_clock::now() > end) {
        given_up = true;
        break;
      }
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i];
  }
};
struct goes_on {
  template <class T>
  void operator()(std::span<T> out, std::span<const T> in) const {
    if (in[0] == 0) first_goes_on = true;
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] + 1;
  }
};
struct beside {
  constexpr auto operator()(const auto& x) const {
    auto p = sw::redistribute_async<pair, R>(sw::opaque<late>(x));
    const auto y = sw::opaque<goes_on>(x);
    return std::tuple{std::move(p).wait(), y};
  }
};

template <class Run>
void check_beside(Run run) {
  first_goes_on = given_up = false;
  sw::launch<two>([&](auto& rank) {
    sw::eager on(rank);
    const auto mine = static_cast<float>(rank.index());
    run(rank, block::from_local(on, std::vector<float>{mine, mine, mine, mine}));
  });
  CHECK(!given_up);
}

TEST_CASE("pending: a rank computes on while its collective waits for another rank, at once") {
  check_beside([](auto&, const block& x) {
    const auto [whole, y] = beside{}(x);
    CHECK(whole.to_local().data[4] == 1);
  });
}
TEST_CASE("pending: a rank computes on while its collective waits for another rank, as a program") {
  check_beside([](auto& rank, const block& x) {
    sw::executor<function_of<beside, block>> program(rank);
    const auto from = x.to_local().data;
    std::copy(from.begin(), from.end(), program.template input<float>(0).begin());
    program.run({});
    CHECK(program.output(0).data[4] == 1);
    CHECK(program.output(0).data[0] == 0);
  });
}

// --- many ------------------------------------------------------------------------------------------------------------

TEST_CASE("pending: many tensors on their way, more than the stream holds, from the pool alone after the first round") {
  sw::launch<two>([](auto& rank) {
    sw::eager on(rank);
    using X = sw::dtensor_of<float, sw::shape<6, 5>, two, sw::shard<0>>;
    std::int64_t taken = 0;
    for (int round = 0; round < 3; ++round) {
      using on_its_way = decltype(sw::redistribute_async<pair, R>(std::declval<const X&>()));
      std::vector<on_its_way> flying;
      flying.reserve(300);
      for (int k = 0; k < 300; ++k) {
        const X x = X::full(on, static_cast<float>(k + round));
        flying.push_back(sw::redistribute_async<pair, R>(x));
      }
      // collectives that are not pending go on beside them
      const auto now = sw::redistribute<pair, R>(X::full(on, 7));
      CHECK(now.to_local().data[29] == 7);
      int wrong = 0;
      for (int k = 299; k >= 0; --k) {
        const auto y = std::move(flying[static_cast<std::size_t>(k)]).wait();
        for (const float v : y.to_local().data) wrong += v == static_cast<float>(k + round) ? 0 : 1;
      }
      CHECK(wrong == 0);
      if (round == 0) taken = on.allocations();
      CHECK(on.allocations() == taken);
    }
  });
}

// --- links -----------------------------------------------------------------------------------------------------------

TEST_CASE("pending: a slow link takes its time") {
  sw::launch<two>([](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<float, sw::shape<1000>, two, sw::shard<0>>::ones(on);
    const auto seconds = [&] {
      const auto begin = std::chrono::steady_clock::now();
      const auto y = sw::redistribute<pair, R>(x);
      const auto z = sw::redistribute_async<pair, R>(x).wait();
      return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
    };
    rank.slow_down({0.01, 0});
    CHECK(seconds() >= 0.02);
    rank.slow_down({0, 2e5});  // 2000 bytes each
    CHECK(seconds() >= 0.02);
    rank.slow_down({});
  });
}

// --- inputs on their way ------------------------------------------------------------------------------------------------

struct doubled {
  constexpr auto operator()(const auto& x) const { return x * 2.0; }
};
using whole = sw::dtensor_of<float, sw::shape<2, 4>, two, R>;
using waits_for_input = sw::function_step<doubled, two, sw::inputs<sw::arriving<sw::input_like<whole>>>>;
using takes_input = sw::function_step<doubled, two, sw::inputs<sw::input_like<whole>>>;

TEST_CASE("pending: a program's input may be on its way") {
  static_assert(waits_for_input::program.nodes[1].op == sw::op_code::wait && count_of<takes_input>(sw::op_code::wait) == 0);
  sw::launch<two>([](auto& rank) {
    sw::eager on(rank);
    const auto mine = static_cast<float>(rank.index() + 1);
    const block x = block::from_local(on, std::vector<float>{mine, mine, mine, mine});
    sw::executor<waits_for_input> a(rank, sw::executor_checks::poison);
    sw::executor<takes_input> b(rank);
    rank.slow_down({0.001, 0});
    for (int round = 0; round < 3; ++round) {
      a.set_input(0, sw::redistribute_async<pair, R>(x));
      b.set_input(0, sw::redistribute_async<pair, R>(x));
      a.run({});
      b.run({});
      CHECK(a.output(0).data[7] == 4);
      CHECK(a.output(0).data[0] == 2);
      CHECK(b.output(0).data[7] == 4);
    }
    // what is set last counts, and what is never used is waited for
    a.set_input(0, sw::redistribute_async<pair, R>(x));
    a.set_input(0, std::vector<float>(8, 5));
    a.run({});
    CHECK(a.output(0).data[7] == 10);
    a.set_input(0, sw::redistribute_async<pair, R>(x));
    CHECK_THROWS_AS(a.set_input(0, sw::redistribute_async<pair, sw::shard<1>>(x)), std::invalid_argument);
  });
}

}  // namespace
