// SPDX-License-Identifier: Apache-2.0
// Recorded runs on GPUs: each call of the schedule is seen once, with the graph's name and module path, in time order on
// its stream; waits end after what they wait for; a recorded run computes what a replayed one does.
#define SHARDWISE_TEST_DEVICES 1
#include <doctest/doctest.h>

#include <models.hpp>
#include <place.hpp>
#include <shardwise/io/trace_export.hpp>
#include <timelines.hpp>
#include <vector>

namespace device_timeline {

namespace sw = shardwise;
using namespace test;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;
constexpr int layers = 4, width = 64, rows = 30, steps = 3;
template <int N>
using step =
    sw::train_step<relu_stack<layers, width>::template model, sum_task<float, rows, width, sw::on<dp<N>, sw::shard<0>>>,
                   sw::plan<sw::data_parallel<dp<N>>>, mesh<N>, sw::adam<>, sw::pipeline<>, float, sw::cuda_backend>;

// Parameters after five steps, of which two are recorded; another one meets a full timeline.
template <int N>
std::vector<float> train(std::vector<sw::timeline>* lines, std::vector<std::vector<int>>* calls) {
  std::vector<float> after;
  sw::launch_cuda<mesh<N>>([&](auto& rank) {
    sw::executor<step<N>, std::remove_reference_t<decltype(rank)>> ex(rank);
    std::vector<float> x(rows * width);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 5) - 2;
    ex.initialise(3);
    ex.set_input(0, x);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 5; ++env.step) {
      if (lines && env.step == 2) ex.record(&(*lines)[static_cast<std::size_t>(rank.index())]);
      if (lines && env.step == 5) ex.record(nullptr);
      if (lines && env.step == 3) ex.mark_ranges();  // profilers' names change nothing
      ex.run(env);
    }
    ex.synchronize();
    if (calls)
      for (const auto& c : ex.calls()) (*calls)[static_cast<std::size_t>(rank.index())].push_back(c.node);
    if (rank.index() != 0) return;
    for (int i = 0; i < ex.parameter_count(); ++i)
      for (const float v : ex.get_parameter(i)) after.push_back(v);
  });
  return after;
}

template <int N>
void check() {
  if (!test::place::has(N)) return;
  std::vector<sw::timeline> lines(N, sw::timeline(2));
  std::vector<std::vector<int>> calls(N);
  const std::vector<float> recorded = train<N>(&lines, &calls), replayed = train<N>(nullptr, nullptr);
  const bool same = recorded == replayed;
  CHECK(same);
  for (const sw::timeline& t : lines) {
    CHECK(t.runs().size() == 2);
    CHECK(t.missed() == 1);
    for (const sw::timeline_run& r : t.runs())
      for (const sw::timeline_event& e : t.events(r)) {
        CHECK(r.time.begin <= e.time.begin);
        CHECK(e.time.begin <= e.time.end);
        CHECK(e.time.end <= r.time.end);
      }
  }
#if SHARDWISE_TEST_JSON
  const test::trace t(sw::chrome_trace(lines));
  CHECK(t.json.at("distributedInfo").at("backend") == "nccl");
  CHECK(t.overlaps() == 0);
  CHECK(t.out_of_order() == 0);
  CHECK(t.broken_flows() == 0);
  CHECK((t.count("communication") > 0) == (N > 1));
  bool named = false, together = false;
  for (const slice& s : t.slices) {
    named = named || s.module == "mod.1";
    together = together || s.calls > 1;
  }
  CHECK(named);
  CHECK(together);  // the updates
  for (int r = 0; r < N; ++r) {
    for (const int s : {2, 3}) CHECK(t.strangers(step<N>::program, calls[static_cast<std::size_t>(r)], r, s) == 0);
    CHECK(t.most_in_flight(r) >= 0);
    CHECK(t.most_in_use(r) <= step<N>::peak_bytes);
  }
#endif
}

TEST_CASE("timeline on one gpu") { check<1>(); }
TEST_CASE("timeline on two gpus") { check<2>(); }

}  // namespace device_timeline
