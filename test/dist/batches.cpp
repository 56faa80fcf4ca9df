// SPDX-License-Identifier: Apache-2.0
// Steps of fully sharded models with their collectives in batches, as written and prefetched: the bits of the step without, on 1 to
// 8 ranks, of which some have no rows; what is counted, what a timeline shows, and where memory ends.
#include <running_norm.hpp>

#include <shardwise/io/explain.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/runtime/fake/fake.hpp>

#include <doctest/doctest.h>

#include <batched.hpp>
#include <models.hpp>
#include <timelines.hpp>

namespace {

using namespace test::running;
namespace sw = shardwise;

template <int D>
using sharded = sw::plan<sw::fully_shard<dp<D>>, sw::at<"up", sw::fully_shard<dp<D>>>,
                         sw::at<"norm", sw::fully_shard<dp<D>, sw::reshard_after_forward<false>>>>;
template <int D, class... P>
using trained = sw::train_step<models<dp<D>>::template net_of, fit<double, D, 7>, sharded<D>, mesh<D, 1>, sw::adam<>,
                               sw::pipeline<P...>, double>;
template <int D, int N>
using judging_plan = sharded<D>;

// A plan with fully_shard implies batches, before passes that move collectives: this one takes them apart again.
struct apart {
  using shardwise_pass = void;
  using moves_collectives = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    for (int i = 0; i < g.node_count; ++i)
      if (g.nodes[i].op == sw::op_code::redistribute) sw::set_batch(g.nodes[i], 0);
    return {};
  }
};

template <int D, class... P>
history<double> history_of(int steps = 3) {
  return train_and_judge<trained<D, P...>, evaluation<D, 1, judging_plan>>(steps);
}

template <int D>
void check_bits() {
  CAPTURE(D);
  const history<double> want = history_of<D, apart>();
  CHECK(difference(history_of<D, sw::batch_collectives>(), want) == 0);
  CHECK(difference(history_of<D>(), want) == 0);
  CHECK(difference(history_of<D, apart, sw::prefetch<1>>(), want) == 0);
  CHECK(difference(history_of<D, sw::batch_collectives, sw::prefetch<1>>(), want) == 0);
  CHECK(difference(history_of<D, sw::batch_collectives, sw::prefetch<2>>(), want) == 0);
}
TEST_CASE("batches: fully sharded steps on 1, 2, 3, 4 and 8 ranks keep their bits") {
  check_bits<1>();
  check_bits<2>();
  check_bits<3>();
  check_bits<4>();
  check_bits<8>();
}

TEST_CASE("batches: under other passes, too") {
  const history<double> want = history_of<3, apart>();
  CHECK(difference(history_of<3, sw::cancel_redistributions, sw::merge_common, sw::rematerialise<0>, sw::batch_collectives,
                              sw::prefetch<>>(),
                   want) == 0);
  CHECK(difference(history_of<3, sw::batch_collectives, sw::expedite_comms, sw::reorder_compute_for_overlap<>,
                              sw::sink_waits, sw::raise_comms>(),
                   want) == 0);
  CHECK(difference(history_of<3, sw::fuse_kernels, sw::batch_collectives, sw::prefetch<>>(),
                   history_of<3, sw::fuse_kernels, apart>()) == 0);
  CHECK(difference(history_of<3, sw::batch_collectives, sw::rematerialise<0>, sw::prefetch<>>(), want) == 0);
}

// --- what is counted -----------------------------------------------------------------------------------------------------

template <int D, int Rows, int Width>
struct stack_task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<Rows, Width>, sw::on<dp<D>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x) - x;
    return sw::sum(y * y);
  }
};
template <int D, int Layers, int Rows, int Width, class... P>
using stack_of = sw::train_step<test::relu_stack<Layers, Width>::template model, stack_task<D, Rows, Width>,
                                sw::plan<sw::fully_shard<dp<D>>, sw::at<"mod.*", sw::fully_shard<dp<D>>>>, sw::mesh<dp<D>>,
                                sw::sgd<>, sw::pipeline<P...>>;
constexpr int layers = 4, width = 12, rows = 8;
template <int D, class... P>
using stack = stack_of<D, layers, rows, width, P...>;
template <int D>
using plain = stack<D, apart>;
template <int D>
using batched = stack<D, sw::batch_collectives>;
template <int D>
using ahead = stack<D, sw::batch_collectives, sw::prefetch<>>;

// Forward a weight and a bias are gathered for each layer, backward the weights of all but the first, and both gradients are summed;
// and the loss.
static_assert(plain<2>::traffic.collectives == 2 * layers + (layers - 1) + 2 * layers + 1);
static_assert(batched<2>::traffic.collectives == layers + (layers - 1) + layers + 1);
static_assert(stack<2>::traffic.collectives == batched<2>::traffic.collectives);
static_assert(ahead<2>::traffic.collectives == batched<2>::traffic.collectives);
static_assert(batched<2>::comm_bytes<dp<2>> == plain<2>::comm_bytes<dp<2>>);
static_assert(ahead<3>::comm_bytes<dp<3>> == plain<3>::comm_bytes<dp<3>>);
// as a program of one rank has none
static_assert(ahead<1>::traffic.collectives == 0);

TEST_CASE("batches: explain has a line for a batch, with its members' bytes") {
  const std::string with = sw::explain_collectives<batched<2>>(), without = sw::explain_collectives<plain<2>>();
  CHECK(with.find("(12, 12) and 1 more") != std::string::npos);
  CHECK(without.find("more") == std::string::npos);
  const auto last_line = [](const std::string& s) { return s.substr(s.rfind('\n', s.size() - 2) + 1); };
  const auto last_word = [](const std::string& s) { return s.substr(s.rfind(' ') + 1); };
  CHECK(last_word(last_line(with)) == last_word(last_line(without)));
  CHECK(last_line(with).find(std::to_string(batched<2>::traffic.collectives)) != std::string::npos);
}

template <class Executor>
void prepare(Executor& ex, std::size_t size = rows * width) {
  std::vector<float> x(size);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) / 4 - 0.5F;
  ex.initialise(3);
  ex.set_input(0, x);
}
sw::step_env numbers(int s) {
  sw::step_env env;
  env.step = s;
  env.lr = 1e-3;
  return env;
}

template <int D>
void check_counted() {
  std::vector<int> wrong(D, 0);
  sw::launch<sw::mesh<dp<D>>>([&](auto& rank) {
    sw::executor<ahead<D>, std::remove_reference_t<decltype(rank)>> ex(rank, sw::executor_checks::poison);
    prepare(ex);
    for (int s = 1; s <= 2; ++s) {
      rank.barrier();
      rank.reset_counts();
      rank.barrier();  // others count what they fetch from this one
      ex.run(numbers(s));
    }
    rank.barrier();
    constexpr auto sent = []<std::size_t... R>(std::index_sequence<R...>) {
      return std::array<std::int64_t, D>{ahead<D>::template comm_bytes<dp<D>, static_cast<int>(R)>...};
    }(std::make_index_sequence<D>{});
    wrong[static_cast<std::size_t>(rank.index())] =
        rank.bytes_written(0) == sent[static_cast<std::size_t>(rank.index())] ? 0 : 1;
  });
  for (const int w : wrong) CHECK(w == 0);
}
TEST_CASE("batches: the bytes that ranks count are those that the program says") {
  check_counted<2>();
  check_counted<3>();
  check_counted<8>();
}

TEST_CASE("batches: a rank without peers notes each once") {
  sw::launch_fake<sw::mesh<dp<4>>>(1, [&](auto& rank) {
    const auto log_of = [&](auto& ex) {
      prepare(ex);
      rank.keep_log(true);
      ex.run(numbers(1));
      return rank.log();
    };
    sw::executor<plain<4>, std::remove_reference_t<decltype(rank)>> a(rank);
    sw::executor<batched<4>, std::remove_reference_t<decltype(rank)>> b(rank);
    const auto alone = log_of(a), together = log_of(b);
    CHECK(a.loss() == b.loss());
    CHECK(alone.size() == static_cast<std::size_t>(plain<4>::traffic.collectives));
    CHECK(together.size() == static_cast<std::size_t>(batched<4>::traffic.collectives));
    std::int64_t bytes[2]{};
    for (const auto& c : alone) bytes[0] += c.bytes;
    for (const auto& c : together) bytes[1] += c.bytes;
    CHECK(bytes[0] == bytes[1]);
  });
}

// The first value that is no number is found in a batch, too.
TEST_CASE("batches: checks look at every member") {
  const auto text = [](float bad) {
    std::string what;
    sw::launch<sw::mesh<dp<2>>>([&](auto& rank) {
      sw::executor<ahead<2>, std::remove_reference_t<decltype(rank)>> ex(rank, sw::executor_checks::finite);
      prepare(ex);
      ex.parameter(1)[0] = bad;  // a bias: the second member
      try {
        ex.run(numbers(1));
      } catch (const std::exception& e) {
        if (rank.index() == 0) what = e.what();
        throw sw::rank_failed();
      }
    });
    return what;
  };
  CHECK(text(0.5F).empty());
  CHECK(text(std::numeric_limits<float>::quiet_NaN()).find("mod.0.fc.bias") != std::string::npos);
}

// --- memory ---------------------------------------------------------------------------------------------------------------

// No byte outside the arena is touched, and what is written in it before a run is of no consequence.
template <class Step>
void check_arena() {
  using mesh_type = typename Step::mesh_type;
  std::vector<float> losses[2];
  std::vector<char> intact(mesh_type::size, 1);
  for (const int filling : {0, 1}) {
    std::vector<float> loss(mesh_type::size);
    sw::launch<mesh_type>([&](auto& rank) {
      constexpr std::size_t slack = 4096, size = static_cast<std::size_t>(Step::peak_bytes);
      std::vector<std::byte> memory(size + 2 * slack + 64, std::byte{0xA5});
      const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
      const std::size_t begin = slack + (64 - (at + slack) % 64) % 64;
      std::fill_n(memory.begin() + static_cast<std::ptrdiff_t>(begin), size,
                  filling != 0 ? std::byte{0xFF} : std::byte{0x5A});
      {
        sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(
            rank, std::span<std::byte>(memory.data() + begin, size), sw::executor_checks::poison);
        prepare(ex);
        for (int s = 1; s <= 3; ++s) ex.run(numbers(s));
        loss[static_cast<std::size_t>(rank.index())] = ex.loss();
      }
      for (std::size_t i = 0; i < memory.size(); ++i)
        if ((i < begin || i >= begin + size) && memory[i] != std::byte{0xA5})
          intact[static_cast<std::size_t>(rank.index())] = 0;
    });
    losses[filling] = loss;
  }
  CHECK(losses[0] == losses[1]);
  for (const char ok : intact) CHECK(ok);
}
TEST_CASE("batches: steps stay in their arena, whatever it held") {
  check_arena<batched<3>>();
  check_arena<ahead<2>>();
  check_arena<ahead<3>>();
  check_arena<stack<2, sw::batch_collectives, sw::prefetch<3>>>();
}
// At most one gathered group and one group's gradients more.
constexpr std::int64_t group_bytes = (width * width + width) * 4 + 2 * 64;
static_assert(ahead<2>::peak_bytes <= batched<2>::peak_bytes + 3 * group_bytes);
static_assert(ahead<2>::memory_use::value.live() <= ahead<2>::peak_bytes);

// --- beside kernels ---------------------------------------------------------------------------------------------------------

template <class Step>
std::vector<sw::timeline> recorded(const sw::threads::link& slow, int steps, std::size_t size = rows * width) {
  using mesh_type = typename Step::mesh_type;
  std::vector<sw::timeline> lines(mesh_type::size, sw::timeline(steps));
  sw::launch<mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    prepare(ex, size);
    ex.run(numbers(1));
    ex.record(&lines[static_cast<std::size_t>(rank.index())]);
    rank.slow_down(slow);
    rank.barrier();
    for (int s = 2; s < 2 + steps; ++s) ex.run(numbers(s));
  });
  return lines;
}

TEST_CASE("batches: a timeline has one event for each, launched, run and waited for beside kernels") {
  const auto lines = recorded<ahead<2>>({}, 2);
  for (const sw::timeline& t : lines)
    for (const sw::timeline_run& run : t.runs()) {
      int together = 0, beside = 0, covered = 0;
      for (const sw::timeline_event& e : t.events(run)) {
        if (e.kind != sw::event_kind::call) continue;
        covered += e.calls;
        together += e.calls == 2 ? 1 : 0;
        beside += e.stream == sw::runtime::communication_stream ? 1 : 0;
      }
      CHECK(covered == static_cast<int>(t.program_of(run).calls.size()));
      CHECK(together == 2 * layers);
      CHECK(beside >= 2 * layers);
    }
#if SHARDWISE_TEST_JSON
  const test::trace t(sw::chrome_trace(lines));
  CHECK(t.overlaps() == 0);
  CHECK(t.out_of_order() == 0);
  CHECK(t.broken_flows() == 0);
  for (int rank = 0; rank < 2; ++rank) CHECK(t.sent(rank) == 2 * ahead<2>::total_comm_bytes(rank));
#endif
}

// The share of a run's collectives between whose launch and whose wait the rank computes a product. By the order in which the
// rank does things, not by how long they take: that is bench/fsdp's.
double hidden_share(const sw::timeline& t) {
  const sw::timeline_run& run = t.runs().front();
  const auto& calls = t.program_of(run).calls;
  const auto of = [&](const sw::timeline_event& e) -> const sw::timeline_call& {
    return calls[static_cast<std::size_t>(e.call)];
  };
  int all = 0, hidden = 0;
  for (const sw::timeline_event& c : t.events(run)) {
    if (c.kind != sw::event_kind::call || of(c).kind != sw::call_kind::communication) continue;
    ++all;
    std::int64_t launched = -1, awaited = run.time.end;
    for (const sw::timeline_event& e : t.events(run)) {
      if (e.kind == sw::event_kind::launch && e.call == c.call) launched = e.time.begin;
      if (e.kind == sw::event_kind::wait && e.call >= c.call) awaited = std::min(awaited, e.time.begin);
    }
    bool product = false;
    if (launched >= 0)
      for (const sw::timeline_event& k : t.events(run))
        product = product || (k.kind == sw::event_kind::call && of(k).op == "einsum" && k.time.begin >= launched &&
                              k.time.begin < awaited);
    hidden += product ? 1 : 0;
  }
  return static_cast<double>(hidden) / all;
}

// Of twelve groups all but the first gather and the last sum have something to hide behind.
template <class... P>
using deep = stack_of<2, 12, 16, 8, P...>;
TEST_CASE("batches: a prefetched step computes between its collectives' launches and waits, the step as written does not") {
  for (const sw::timeline& t : recorded<deep<sw::batch_collectives>>({}, 1, 16 * 8)) CHECK(hidden_share(t) == 0);
  for (const sw::timeline& t : recorded<deep<sw::batch_collectives, sw::prefetch<>>>({}, 1, 16 * 8)) {
    const double share = hidden_share(t);
    MESSAGE("rank " << t.rank().rank << ": " << share);
    CHECK(share > 0.85);
    CHECK(share < 1);
  }
}

// Two gathers of one batch, of which the later one is used first.
template <int Width, class Bound = sw::unbound>
struct bias_first : sw::module<bias_first<Width, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<Width>, sw::init::ones>, weight),
                    (sw::parameter<sw::shape<Width>, sw::init::zeros>, bias));
  constexpr auto forward(const auto& x) const { return sw::relu(x + bias) * weight; }
};
template <int Width>
struct bias_first_net {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (bias_first<Width>, first), (bias_first<Width>, second));
    constexpr auto forward(const auto& x) const { return second(first(x)); }
  };
};
// Every wait one kernel earlier, where that does not give what is waited for: before it is needed.
struct earlier_waits {
  using shardwise_pass = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    int order[Graph::node_capacity]{};
    for (int i = 0; i < g.node_count; ++i) order[i] = i;
    for (int i = 1; i < g.node_count; ++i)
      if (g.nodes[i].op == sw::op_code::wait && g.nodes[i - 1].op != sw::op_code::redistribute &&
          sw::runs_kernel(g.nodes[i - 1].op))
        std::swap(order[i - 1], order[i]);
    sw::passes::permuting<Graph, Graph::node_capacity> moved;
    using permutation = sw::passes::permute_nodes<void>;
    permutation::begin(moved, g);
    permutation::step(moved, g, order, sw::stage_work::all());
    g = moved.g;
    return {};
  }
};
using bias_first_step = sw::train_step<
    bias_first_net<12>::model, stack_task<2, 8, 12>,
    sw::plan<sw::fully_shard<dp<2>>, sw::at<"first", sw::fully_shard<dp<2>>>, sw::at<"second", sw::fully_shard<dp<2>>>>,
    sw::mesh<dp<2>>, sw::sgd<>, sw::pipeline<sw::batch_collectives, sw::prefetch<>, earlier_waits>>;

// For a collective call k on the stream and w(k), the first node that waits for any of its members: when a call behind w(k) runs,
// k has been awaited.
TEST_CASE("batches: the first wait for any member is the batch's") {
  using step = bias_first_step;
  static constexpr const auto& g = sw::runtime::lowered<step>::program();
  struct : sw::runtime::lowered<step> {
    using lowered::calls;
    using lowered::lower;
  } program;
  std::vector<std::byte> arena(static_cast<std::size_t>(step::peak_bytes) + 64);
  constexpr int origin[sw::max_axes]{};
  program.lower(arena.data(), origin, {}, nullptr);
  const auto& calls = program.calls();
  const sw::runtime::overlap o = sw::runtime::overlap_of(program.tables(), calls);
  int later_is_first = 0;
  for (std::size_t k = 0; k < calls.size(); ++k) {
    if (!o.beside[k]) continue;
    int wait = g.node_count, of = -1;
    for (int i = g.node_count - 1; i >= 0; --i)
      if (g.nodes[i].op == sw::op_code::wait)
        if (const int c = sw::collective_of(g, i); c >= 0 && sw::batch_begin(g, c) == calls[k].node) wait = i, of = c;
    CAPTURE(k);
    CAPTURE(wait);
    REQUIRE(of >= 0);
    later_is_first += of != calls[k].node;
    int awaited = -1;
    for (std::size_t at = k + 1; at <= calls.size(); ++at) {
      awaited = std::max(awaited, o.await[at]);
      if (at == calls.size() || calls[at].node > wait) break;
    }
    CHECK(awaited >= static_cast<int>(k));
  }
  CHECK(later_is_first > 0);
}

}  // namespace
