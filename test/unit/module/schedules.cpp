// SPDX-License-Identifier: Apache-2.0
// Learning-rate schedules against tables of PyTorch's formulas, its recursions among them, worked out in 30 digits (mpmath); a step's
// parameters under them, at once and compiled, on 1 to 4 ranks.
#include <figures.hpp>

#include <shardwise/module/schedules.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <limits>
#include <vector>

namespace {

namespace sw = shardwise;
using numbers = std::vector<double>;

void check(const auto& schedule, const numbers& want) {
  for (std::size_t n = 0; n < want.size(); ++n) {
    INFO("after ", n, " updates");
    CHECK(std::abs(schedule.at(static_cast<std::int64_t>(n)) - want[n]) <= 1e-15 * want[n]);
  }
}

TEST_CASE("schedules: rates after each number of updates") {
  check(sw::constant_schedule{.rate = 0.25}, {0.25, 0.25, 0.25});
  check(sw::linear_schedule{.from = 0.1, .to = 0.7, .steps = 6}, {0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.7, 0.7});
  check(sw::cosine_schedule{.from = 0.5, .to = 0.02, .steps = 8},
        {0.5, 0.48173108780270882, 0.42970562748477141, 0.35184402376762155, 0.26, 0.16815597623237845, 0.090294372515228594,
         0.038268912197291179, 0.02, 0.02});
  check(sw::step_schedule{.rate = 0.3, .every = 3, .factor = 0.5},
        {0.3, 0.3, 0.3, 0.15, 0.15, 0.15, 0.075, 0.075, 0.075, 0.0375});
  check(sw::one_cycle_schedule{.peak = 1, .steps = 10},
        {0.04, 0.52, 1.0, 0.95048463201347376, 0.81174565394976305, 0.61126202193628929, 0.38874197806371071,
         0.18825834605023695, 0.049519367986526242, 4.0e-6});
  check(sw::warm_up(4, sw::step_schedule{.rate = 0.8, .every = 2, .factor = 0.5}),
        {0, 0.2, 0.4, 0.6, 0.8, 0.8, 0.4, 0.4, 0.2});
  check(sw::warm_up(2, sw::constant_schedule{.rate = 0.8}, 0.5), {0.4, 0.6, 0.8, 0.8});
  check(sw::schedule_of<sw::warm_up(1, sw::warm_up(1, sw::constant_schedule{.rate = 2}, 0.5))>, {0, 1, 2});
}

// What was checked while compiling is the schedule itself.
template <auto S>
constexpr bool is_checked =
    std::is_same_v<decltype(sw::checked_schedule<S>::value), const decltype(S)> &&
    sw::checked_schedule<S>::value.mistake() == nullptr && sw::checked_schedule<S>::value.steps == sw::schedule_of<S>.steps;
static_assert(is_checked<sw::cosine_schedule{.from = 3e-4, .to = 3e-5, .steps = 900}> &&
              sw::checked_schedule<sw::linear_schedule{.from = 0.1, .to = 0.7, .steps = 6}>::value.steps == 6);

TEST_CASE("schedules: wrong numbers are refused, and so are steps that a run does not have") {
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  const auto says = [](const char* text) { return doctest::Contains(text); };
  CHECK_THROWS_WITH((void)sw::constant_schedule{.rate = -1}.at(0), says("constant_schedule: the rate must be finite"));
  CHECK_THROWS_WITH((void)sw::constant_schedule{.rate = nan}.at(0), says("constant_schedule: the rate must be finite"));
  CHECK_THROWS_WITH((void)(sw::linear_schedule{.from = inf, .to = 1, .steps = 2}.at(0)), says("both rates"));
  CHECK_THROWS_WITH((void)(sw::cosine_schedule{.from = 1, .to = 0}.at(0)),
                    says("cosine_schedule: there must be at least 1 step"));
  CHECK_THROWS_WITH((void)(sw::step_schedule{.rate = 1}.at(0)), says("`every` must be at least 1"));
  CHECK_THROWS_WITH((void)(sw::one_cycle_schedule{.peak = 1, .steps = 9, .rising = 1.5}.at(0)), says("from 0 to 1"));
  CHECK_THROWS_WITH((void)(sw::one_cycle_schedule{.peak = 1, .steps = 9, .end_divisor = 0}.at(0)), says("both divisors"));
  CHECK_THROWS_WITH((void)(sw::one_cycle_schedule{.peak = 1, .steps = 9}.at(9)), says("after 9 updates of 9 in all"));
  CHECK_THROWS_WITH((void)(sw::warm_up(0, sw::constant_schedule{.rate = 1}).at(0)),
                    says("warm_up: there must be at least 1"));
  CHECK_THROWS_WITH((void)(sw::warm_up(2, sw::step_schedule{.rate = 1}).at(0)), says("`every` must be at least 1"));
  CHECK_THROWS_WITH((void)sw::constant_schedule{.rate = 1}.at(-1), says("they count from 0: give env.step - 1"));
}

// One weight per rank's rows, loss sum of w x: each update takes rate times the sum of x away, so that the weight says all rates.
template <int N>
struct line : sw::axis<N> {};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<2, 1>, only));
  constexpr auto forward(const auto& x) const { return only(x); }
};
template <int N>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<12, 2>, sw::on<line<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& net, const auto& x) const { return sw::mean(net(x)); }
};
template <int N>
numbers trained() {
  using mesh = sw::mesh<line<N>>;
  using step = sw::train_step<model, task<N>, sw::plan<sw::data_parallel<line<N>>>, mesh, sw::sgd<>, sw::pipeline<>, double>;
  numbers all;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(1);
    run.set_parameter("only.weight", numbers{1, 2});
    const auto rates = sw::warm_up(2, sw::cosine_schedule{.from = 0.5, .to = 0.25, .steps = 3});
    sw::step_env env;
    std::vector<double> x(24);
    for (std::size_t i = 0; i < 24; ++i) x[i] = i % 2 == 0 ? 1 : 2;
    run.set_input(0, x);
    for (env.step = 1; env.step <= 6; ++env.step) {
      env.lr = rates.at(env.step - 1);
      run.run(env);
    }
    const auto w = run.full_parameter("only.weight");
    if (rank.index() == 0) all.assign(w.begin(), w.end());
  });
  return all;
}
TEST_CASE("schedules: what a training run makes of them, on 1 to 4 ranks") {
  const double sum = 0 + 0.25 + 0.5 + 0.4375 + 0.3125 + 0.25;
  for (const numbers& w : {trained<1>(), trained<2>(), trained<3>(), trained<4>()}) {
    CHECK(w.size() == 2);
    CHECK(std::abs(w[0] - (1 - sum)) < 1e-14);
    CHECK(std::abs(w[1] - (2 - 2 * sum)) < 1e-14);
  }
}

}  // namespace
