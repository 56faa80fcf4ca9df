// SPDX-License-Identifier: Apache-2.0
// shard_optimizer_states on ranks: what data parallelism computes, with uneven rows and empty shards, clipped and in groups; the
// states by name, each rank its rows, and moved between plans that split them otherwise; eager training.
#include <running_norm.hpp>

#include <shardwise/module/eager_gradient.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

using test::running::dp;
using test::running::numbers;
using test::running::step_numbers;
using test::running::tp;
namespace sw = shardwise;
using sw::moment;
using sw::shard_optimizer_states;

template <int N>
struct rep : sw::axis<N> {};
template <class Bound = sw::unbound>
struct two_layers : sw::module<two_layers<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<5, 6>, up), (sw::linear<6, 3>, down),
                    (sw::parameter<sw::shape<>, sw::init::ones>, gain));
  constexpr auto forward(const auto& x) const { return down(sw::tanh(up(x))) * gain; }
};
// Rows of the batch over all ranks; a scalar that nothing splits.
template <class... Axes>
struct fit_over {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<7, 5>, sw::on<Axes, sw::shard<0>>...>,
                            sw::input_tensor<double, sw::shape<7, 3>, sw::on<Axes, sw::shard<0>>...>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = sw::tanh(model(x)) - t;
    return sw::mean(apart * apart);
  }
};
template <class... E>
using over_both = sw::train_step<two_layers, fit_over<rep<2>, dp<2>>, sw::plan<E...>, sw::mesh<rep<2>, dp<2>>, sw::adam<>,
                                 sw::pipeline<>, double>;

constexpr moment moments[] = {moment::first, moment::second};
const char* const names[] = {"up.weight", "up.bias", "down.weight", "down.bias", "gain"};

template <class Executor>
void train(Executor& ex, int from, int to) {
  for (int s = from; s <= to; ++s) {
    ex.set_input(0, numbers<double>(35, s));
    ex.set_input(1, numbers<double>(21, s + 20));
    ex.run(step_numbers(s));
  }
}
// Parameters and states, whole.
template <class Executor>
std::vector<std::vector<double>> everything(Executor& ex) {
  std::vector<std::vector<double>> r;
  for (const char* name : names) {
    r.push_back(ex.full_parameter(name));
    for (const moment m : moments) r.push_back(ex.full_state(name, m));
  }
  return r;
}
double apart(const std::vector<std::vector<double>>& a, const std::vector<std::vector<double>>& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t k = 0; k < a.size() && k < b.size(); ++k)
    for (std::size_t i = 0; i < a[k].size(); ++i) most = std::max(most, std::abs(a[k][i] - b[k][i]));
  return most;
}

using both_whole = over_both<sw::data_parallel<rep<2>>, sw::data_parallel<dp<2>>>;
using states_on_one = over_both<sw::data_parallel<rep<2>>, sw::data_parallel<dp<2>, shard_optimizer_states>>;
using states_on_both =
    over_both<sw::data_parallel<rep<2>, shard_optimizer_states>, sw::data_parallel<dp<2>, shard_optimizer_states>>;
using beside_shards = over_both<sw::data_parallel<rep<2>, shard_optimizer_states>, sw::fully_shard<dp<2>>>;
using in_shards = over_both<sw::data_parallel<rep<2>>, sw::fully_shard<dp<2>>>;

// Trained under one plan, moved to another one, trained on under both.
template <class From, class To>
void check_move() {
  sw::launch<typename From::mesh_type, typename To::mesh_type>([](auto& rank, auto& other) {
    sw::executor<From> from(rank);
    sw::executor<To> to(other);
    from.initialise(3);
    train(from, 1, 2);
    to.initialise(4);
    const auto want = everything(from);
    to.copy_parameters(from);
    to.copy_state(from);
    CHECK(everything(to) == want);
    CHECK(everything(from) == want);
    train(from, 3, 4);
    train(to, 3, 4);
    CHECK(apart(everything(from), everything(to)) < 1e-12);
    CHECK(everything(from) != want);
  });
}
TEST_CASE("shard_optimizer_states over one axis of two, over both, beside shards; the states moved between these plans") {
  check_move<both_whole, states_on_one>();
  check_move<states_on_one, states_on_both>();
  check_move<states_on_both, beside_shards>();
  check_move<beside_shards, in_shards>();
  check_move<in_shards, states_on_both>();
  check_move<states_on_both, both_whole>();
}

TEST_CASE("shard_optimizer_states: by name, each rank its rows, and from the whole") {
  sw::launch<sw::mesh<rep<2>, dp<2>>>([](auto& rank) {
    sw::executor<states_on_both> ex(rank);
    ex.initialise(3);
    train(ex, 1, 2);
    const auto whole =
        ex.full_state("up.bias", moment::second);  // 6 rows: 2 and 1 of the first three, 2 and 1 of the others
    const auto own = std::as_const(ex).state("up.bias", moment::second);
    const std::size_t begin[] = {0, 2, 3, 5}, rows[] = {2, 1, 2, 1};
    const auto r = static_cast<std::size_t>(rank.index());
    REQUIRE(own.size() == rows[r]);
    for (std::size_t i = 0; i < own.size(); ++i) CHECK(own[i] == whole[begin[r] + i]);
    CHECK(ex.parameter(ex.parameter_index("up.bias")).size() == 6);
    CHECK(ex.state_layout("down.weight", moment::first).ext[0] == (rank.index() == 3 ? 0 : 1));
    std::vector<double> some(18);
    for (std::size_t i = 0; i < some.size(); ++i) some[i] = 0.5 * static_cast<double>(i) - 3;
    ex.set_state("down.weight", moment::first, some);
    CHECK(ex.full_state("down.weight", moment::first) == some);
  });
}

// --- against data parallelism on the same ranks ---------------------------------------------------------------------------

template <int D, class Optimizer, class... Options>
using step_on = sw::train_step<two_layers, fit_over<dp<D>>, sw::plan<sw::data_parallel<dp<D>, Options...>>, sw::mesh<dp<D>>,
                               Optimizer, sw::pipeline<>, double>;
template <class Step, class Set>
void train_with(sw::executor<Step>& ex, int steps, Set&& set) {
  ex.initialise(3);
  for (int s = 1; s <= steps; ++s) {
    ex.set_input(0, numbers<double>(35, s));
    ex.set_input(1, numbers<double>(21, s + 20));
    sw::env_of<Step> env;
    env.step = s;
    env.lr = 0.05;
    env.momentum = 0.9;
    env.eps = 0.01;
    env.weight_decay = 0.1;
    set(env);
    ex.run(env);
  }
}
template <class A, class B, class Set>
void check_equal(double bound, Set&& set) {
  sw::launch<typename A::mesh_type>([&](auto& rank) {
    sw::executor<A> a(rank);
    sw::executor<B> b(rank);
    train_with(a, 3, set);
    train_with(b, 3, set);
    double most = std::abs(a.loss() - b.loss());
    for (const char* name : names) most = std::max(most, apart({a.full_parameter(name)}, {b.full_parameter(name)}));
    CHECK(most <= bound);
  });
}
constexpr auto as_they_are = [](auto&) {};

template <int D>
void check_ranks() {
  CAPTURE(D);
  check_equal<step_on<D, sw::sgd<true>, shard_optimizer_states>, step_on<D, sw::sgd<true>>>(0, as_they_are);
  check_equal<step_on<D, sw::adamw<>, shard_optimizer_states>, step_on<D, sw::adamw<>>>(0, as_they_are);
  using clipped = sw::clip_norm<sw::sgd<true>>;  // Adam takes no notice of a factor
  check_equal<step_on<D, clipped, shard_optimizer_states>, step_on<D, clipped>>(1e-14,
                                                                                [](auto& env) { env.max_norm = 0.01; });
}
TEST_CASE("shard_optimizer_states on 1, 2, 3, 4 and 5 ranks: the steps of data parallelism, bit for bit") {
  check_ranks<1>();
  check_ranks<2>();
  check_ranks<3>();
  check_ranks<4>();
  check_ranks<5>();
}
TEST_CASE("shard_optimizer_states: averaged gradients") {
  check_equal<step_on<3, sw::adam<>, shard_optimizer_states, sw::average_gradients>,
              step_on<3, sw::adam<>, sw::average_gradients>>(0, as_they_are);
}

template <class... Options>
using settled = sw::train_step<two_layers, fit_over<dp<3>>,
                               sw::plan<sw::data_parallel<dp<3>, Options...>, sw::at<"up", sw::frozen>,
                                        sw::at<"down", sw::param_group<"slow", "bias">>>,
                               sw::mesh<dp<3>>, sw::adam<>, sw::pipeline<>, double>;
TEST_CASE("shard_optimizer_states: frozen modules and groups of parameters") {
  check_equal<settled<shard_optimizer_states>, settled<>>(0, [](auto& env) { env.template group<"slow">().lr = 0.25; });
  static_assert(
      sw::runtime::detail::count_states<settled<shard_optimizer_states>>(settled<shard_optimizer_states>::program) == 6);
}

// --- eager ----------------------------------------------------------------------------------------------------------------

// One module's states stay whole: of several styles of an axis the last one holds.
template <int D>
using mixed = sw::plan<sw::data_parallel<dp<D>, shard_optimizer_states>, sw::at<"up", sw::colwise<tp<2>>>,
                       sw::at<"down", sw::rowwise<tp<2>>>, sw::at<"down", sw::data_parallel<dp<D>>>>;

template <int D, class Optimizer>
void check_eager() {
  using mesh = sw::mesh<dp<D>, tp<2>>;
  using task = fit_over<dp<D>>;
  using step = sw::train_step<two_layers, task, mixed<D>, mesh, Optimizer, sw::pipeline<>, double>;
  sw::launch<mesh>([](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<step, rank_type> program(rank);
    program.initialise(5);
    sw::eager on(rank);
    sw::bind_eager<two_layers, mixed<D>, mesh, double, rank_type> model{};
    sw::initialise(model, on, 5);
    sw::eager_optimizer<Optimizer, decltype(model)> optimizer;
    using input = sw::dtensor_of<double, sw::shape<7, 5>, mesh, sw::on<dp<D>, sw::shard<0>>>;
    using target = sw::dtensor_of<double, sw::shape<7, 3>, mesh, sw::on<dp<D>, sw::shard<0>>>;
    for (int s = 1; s <= 3; ++s) {
      sw::step_env env = step_numbers(s);
      env.max_norm = 0.05;
      train(program, s, s);
      const auto xs = numbers<double>(35, s), ts = numbers<double>(21, s + 20);
      on.start_step(env.seed, env.step);
      const auto [loss, gradients] =
          sw::value_and_grad(task{})(model, input::distribute(on, xs), target::distribute(on, ts));
      CHECK(loss.item() == program.loss());
      optimizer.step(model, gradients, env);
      sw::for_each_parameter(model, [&](const std::string& path, auto& p) {
        const auto theirs = program.parameter(program.parameter_index(path));
        const auto ours = p.to_local().data;
        const bool same = ours.size() == theirs.size() &&
                          (ours.empty() || std::memcmp(ours.data(), theirs.data(), ours.size_bytes()) == 0);
        CHECK_MESSAGE(same, path, " differs in step ", s);
      });
    }
  });
}
TEST_CASE("shard_optimizer_states: eager training is the compiled step, bit for bit") {
  check_eager<2, sw::adam<>>();
  check_eager<3, sw::sgd<true>>();
}

}  // namespace
