// SPDX-License-Identifier: Apache-2.0
// The example's plans in float64: the loss of a step is a function of seed, data and step, not of the plan. 50 steps with a learning
// rate that rises within six: updates overshoot there and enlarge a difference some thousand times, so that a real one, of a norm or a
// mean taken over shards, say, would be far above rounding.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <train_text/train.hpp>
#include <type_traits>
#include <vector>

namespace {

namespace sw = shardwise;
namespace tt = train_text;

constexpr std::size_t steps = 50;
constexpr double allowed = 1e-10;  // of the loss; 4.1e-12 where it was measured

template <class Plan>
using step_in_double = sw::train_step<tt::gpt_of<tt::size>::gpt, typename Plan::task, typename Plan::plan,
                                      typename Plan::mesh, sw::clip_norm<sw::adamw<true>>, typename Plan::pipeline, double>;

template <class Plan>
std::vector<double> losses(const tt::corpus& text) {
  std::vector<double> all;
  sw::launch<typename Plan::mesh>([&](auto& rank) {
    sw::executor<step_in_double<Plan>, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(1);
    tt::batch b;
    sw::step_env env;
    env.seed = 1;
    env.beta2 = 0.99;
    env.weight_decay = 0.05;
    env.max_norm = 1;
    for (std::size_t s = 1; s <= steps; ++s) {
      b.draw(text.train, 1, s);
      run.set_input(0, b.in);
      run.set_input(1, b.next);
      env.step = static_cast<std::int64_t>(s);
      env.lr = tt::peak_rate * std::min(1.0, static_cast<double>(s) / 6);
      run.run(env);
      if (rank.index() == 0) all.push_back(run.loss());
    }
  });
  return all;
}

template <class Plan>
void check_plan(const tt::corpus& text, const std::vector<double>& want) {
  const std::vector<double> got = losses<Plan>(text);
  REQUIRE(got.size() == want.size());
  double apart = 0;
  for (std::size_t s = 0; s < steps; ++s) {
    const double d = std::abs(got[s] - want[s]) / want[s];
    apart = d <= apart ? apart : d;  // a NaN stays
  }
  INFO(Plan::name << ": " << apart);
  CHECK(apart < allowed);
}

TEST_CASE("every plan of train_text has the same losses in float64") {
  const tt::corpus text = tt::load_corpus({}, 1);
  const std::vector<double> want = losses<tt::plans::ddp<tt::host_ranks>>(text);
  CHECK(want.back() < want.front() - 1);
  check_plan<tt::plans::fsdp<tt::host_ranks>>(text, want);
  check_plan<tt::plans::hsdp<tt::host_ranks>>(text, want);
  check_plan<tt::plans::tp_only<tt::host_ranks>>(text, want);
  check_plan<tt::plans::ddp_tp<tt::host_ranks>>(text, want);
  check_plan<tt::plans::fsdp_tp<tt::host_ranks>>(text, want);
}

}  // namespace
