// SPDX-License-Identifier: Apache-2.0
// Real runs recorded: each call of each step is one slice with the graph's name and module path, on the track that it ran
// on; waits end after what they wait for; payload and memory are what is measured and planned.
#include <shardwise/io/trace_export.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

#include <models.hpp>
#include <timelines.hpp>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;
constexpr int layers = 3, width = 20, rows = 7;  // uneven on 2 and 3 ranks
template <int N, class... Passes>
using step =
    sw::train_step<relu_stack<layers, width>::template model, sum_task<float, rows, width, sw::on<dp<N>, sw::shard<0>>>,
                   sw::plan<sw::data_parallel<dp<N>>>, mesh<N>, sw::adam<>, sw::pipeline<Passes...>>;
template <int N>
using overlapped = step<N, sw::expedite_comms, sw::reorder_compute_for_overlap<>, sw::sink_waits, sw::raise_comms>;

template <class Executor>
void prepare(Executor& ex) {
  std::vector<float> x(rows * width);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) - 2;
  ex.initialise(3);
  ex.set_input(0, x);
}
template <class Executor>
std::vector<int> nodes_of(const Executor& ex) {
  std::vector<int> nodes;
  for (const auto& c : ex.calls()) nodes.push_back(c.node);
  return nodes;
}

struct recorded {
  std::vector<sw::timeline> lines;
  std::vector<std::vector<int>> calls;  // by rank
  std::vector<std::int64_t> sent;       // measured while steps were recorded
};

constexpr int steps = 3;

// A step without a recorder, `steps` with one, two more than there is room for, one after it was taken back.
template <class Step>
recorded record() {
  using mesh_type = typename Step::mesh_type;
  constexpr std::size_t n = mesh_type::size;
  recorded r{std::vector<sw::timeline>(n, sw::timeline(steps)), std::vector<std::vector<int>>(n),
             std::vector<std::int64_t>(n)};
  sw::launch<mesh_type>([&](auto& rank) {
    const auto me = static_cast<std::size_t>(rank.index());
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    prepare(ex);
    sw::step_env env;
    env.lr = 1e-3;
    const auto run = [&] {
      ++env.step;
      ex.run(env);
    };
    run();
    ex.record(&r.lines[me]);
    rank.reset_counts();
    for (int s = 0; s < steps; ++s) run();
    r.sent[me] = rank.bytes_written(0);
    run(), run();
    ex.record(nullptr);
    run();
    r.calls[me] = nodes_of(ex);
  });
  return r;
}

TEST_CASE("timeline: as many events as the program has calls, launches and waits") {
  const recorded r = record<overlapped<2>>();
  for (const sw::timeline& t : r.lines) {
    REQUIRE(t.runs().size() == steps);
    CHECK(t.missed() == 2);
    CHECK(t.runs()[0].step == 2);
    int beside = 0;
    for (const sw::timeline_run& run : t.runs()) {
      int of[4]{};
      for (const sw::timeline_event& e : t.events(run)) {
        ++of[static_cast<int>(e.kind)];
        CHECK(run.time.begin <= e.time.begin);
        CHECK(e.time.begin <= e.time.end);
        CHECK(e.time.end <= run.time.end);
      }
      const auto& calls = t.program_of(run).calls;
      CHECK(of[static_cast<int>(sw::event_kind::call)] == static_cast<int>(calls.size()));
      beside = of[static_cast<int>(sw::event_kind::launch)];
      CHECK(beside > 0);
      CHECK(of[static_cast<int>(sw::event_kind::wait)] > 0);
      CHECK(of[static_cast<int>(sw::event_kind::wait)] <= beside);
    }
  }
}

#if SHARDWISE_TEST_JSON

template <class Step>
void check(int beside_at_least) {
  constexpr int n = Step::mesh_type::size;
  const recorded r = record<Step>();
  const test::trace t(sw::chrome_trace(r.lines));
  CHECK(t.overlaps() == 0);
  CHECK(t.out_of_order() == 0);
  CHECK(t.broken_flows() == 0);
  CHECK(t.count("step") == n * steps);
  CHECK(static_cast<int>(t.flows.size()) >= beside_at_least * n * steps);
  CHECK(t.instants == std::vector<std::string>(n, "timeline full: 2 further steps are not here"));
  CHECK(t.json.at("otherData").at("missed_steps") == 2 * n);
  CHECK(t.json.at("distributedInfo").at("backend") == "threads");
  CHECK(t.json.at("distributedInfo").at("world_size") == n);
  for (int rank = 0; rank < n; ++rank) {
    for (int s = 2; s < 2 + steps; ++s)
      CHECK(t.strangers(Step::program, r.calls[static_cast<std::size_t>(rank)], rank, s) == 0);
    CHECK(t.sent(rank) == r.sent[static_cast<std::size_t>(rank)]);
    CHECK((t.most_in_flight(rank) > 0) == (n > 1));
    CHECK(t.most_in_use(rank) <= Step::peak_bytes);
    CHECK(t.most_in_use(rank) == Step::memory_use::value.live());
  }
  bool named = false;
  for (const slice& s : t.slices) named = named || s.module == "mod.1";
  CHECK(named);
}

TEST_CASE("timeline: steps as written") {
  check<step<1>>(0);
  check<step<2>>(0);
  check<step<3>>(0);
}
TEST_CASE("timeline: collectives beside kernels have a track of their own") {
  check<overlapped<1>>(0);
  check<overlapped<2>>(1);
  check<overlapped<3>>(1);
}
TEST_CASE("timeline: fused kernels name what they compute") {
  using fused = step<2, sw::fuse_kernels>;
  check<fused>(0);
  const test::trace t(sw::chrome_trace(record<fused>().lines));
  int layer = 0;  // its result is kept for backward before relu sees it
  for (const slice& s : t.slices) layer += s.name == "einsum_1" && s.fused == "[add*, relu]" && s.module == "mod.1" ? 1 : 0;
  CHECK(layer == 2 * steps);
}

TEST_CASE("timeline: an iterated step shows its phases") {
  using moved = sw::iterated<step<2, sw::fused_optimizer, sw::comm_fusion_in_place<1>, sw::remove_copy_from_optimizer>,
                             sw::move_descendants<"einsum", "all_reduce", "advance">>;
  static_assert(moved::kept_values > 0);
  constexpr int iterations = 4;
  std::vector<sw::timeline> lines(2, sw::timeline(iterations));
  std::vector<int> calls[3];
  sw::launch<mesh<2>>([&](auto& rank) {
    sw::iterated_executor<moved, std::remove_reference_t<decltype(rank)>> ex(rank);
    prepare(ex.main());
    ex.record(&lines[static_cast<std::size_t>(rank.index())]);
    sw::step_env env;
    env.lr = 1e-3;
    for (env.step = 1; env.step <= iterations; ++env.step) ex.run(env, env.step == iterations);
    if (rank.index() != 0) return;
    calls[0] = nodes_of(ex.setup());
    calls[1] = nodes_of(ex.main());
    calls[2] = nodes_of(ex.cleanup());
  });
  const test::trace t(sw::chrome_trace(lines));
  CHECK(t.overlaps() == 0);
  CHECK(t.instants.empty());
  for (const int rank : {0, 1}) {
    CHECK(t.strangers(moved::setup::program, calls[0], rank, 1) == 0);
    for (const int s : {2, 3}) CHECK(t.strangers(moved::main::program, calls[1], rank, s) == 0);
    CHECK(t.strangers(moved::cleanup::program, calls[2], rank, iterations) == 0);
  }
  for (const slice& s : t.slices) CHECK(s.phase == (s.step == 1 ? "setup" : s.step == iterations ? "cleanup" : "main"));
}

#endif

}  // namespace
