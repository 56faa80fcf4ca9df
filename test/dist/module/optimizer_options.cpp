// SPDX-License-Identifier: Apache-2.0
// Dampening, amsgrad, maximize, clipping by value and Lion against PyTorch's rules in plain loops over doubles: twelve steps on 1 to 4
// ranks, data-parallel, in shards of parameters and in shards of states; lists have the bits of single updates; steps that a dynamic loss
// scale skips leave no trace; checkpoints keep every state.
#include <shardwise/shardwise.hpp>

#include <shardwise/io/checkpoint/checkpoint.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/optimizer/split_optimizer.hpp>

#include <doctest/doctest.h>

#include <files.hpp>
#include <torch_optimizers.hpp>

#include <cmath>
#include <limits>
#include <type_traits>
#include <vector>

namespace {

namespace sw = shardwise;
using test::torch_optimizer;
using kind = torch_optimizer::kind;

template <int N>
struct dp : sw::axis<N> {};

constexpr int rows = 10, in = 3, out = 5;  // uneven over 3 and 4 ranks
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<in, out>, line));
  constexpr auto forward(const auto& x) const { return line(x); }
};
template <class T, int N>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<T, sw::shape<rows, in>, sw::on<dp<N>, sw::shard<0>>>,
                            sw::input_tensor<T, sw::shape<rows, out>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = sw::cast<T>(model(x)) - t;
    return sw::mean(apart * apart);
  }
};
template <class T, int N, class Optimizer, class Pipeline, class... E>
using step = sw::train_step<net, fit<T, N>, sw::plan<E...>, sw::mesh<dp<N>>, Optimizer, Pipeline, T>;

constexpr int steps = 12;
// Gradients shrink from the third step on, so that amsgrad's largest moment is an older one.
template <class T>
std::vector<T> numbers(int count, int s, double seed) {
  std::vector<T> v;
  const double size = s <= 3 ? 2 : 0.5;
  for (int i = 0; i < count; ++i) v.push_back(static_cast<T>(size * std::sin(1.7 * i + seed + 0.9 * s)));
  return v;
}
sw::step_env env_at(int s) {
  sw::step_env env;
  env.step = s;
  env.lr = 0.02;
  env.beta1 = 0.8;
  env.beta2 = 0.7;
  env.eps = 1e-6;
  env.momentum = 0.9;
  env.dampening = 0.3;
  env.weight_decay = 0.1;
  env.max_norm = 1.5;
  env.clip_value = 0.25;
  return env;
}

// y = x W^T + b, the mean of (y - t)^2, and its gradients.
std::vector<std::vector<double>> gradients_of(const std::vector<torch_optimizer::parameter>& p, int s, double& loss) {
  const auto x = numbers<double>(rows * in, s, 0), t = numbers<double>(rows * out, s, 5);
  std::vector<std::vector<double>> g{std::vector<double>(out * in), std::vector<double>(out)};
  loss = 0;
  for (int r = 0; r < rows; ++r)
    for (int o = 0; o < out; ++o) {
      double y = p[1].x[static_cast<std::size_t>(o)];
      for (int i = 0; i < in; ++i)
        y += x[static_cast<std::size_t>(r * in + i)] * p[0].x[static_cast<std::size_t>(o * in + i)];
      const double d = y - t[static_cast<std::size_t>(r * out + o)];
      loss += d * d / (rows * out);
      g[1][static_cast<std::size_t>(o)] += 2 * d / (rows * out);
      for (int i = 0; i < in; ++i)
        g[0][static_cast<std::size_t>(o * in + i)] += 2 * d / (rows * out) * x[static_cast<std::size_t>(r * in + i)];
    }
  return g;
}

void check_near(const std::vector<double>& got, const std::vector<double>& expected) {
  REQUIRE(got.size() == expected.size());
  for (std::size_t i = 0; i < got.size(); ++i)
    CHECK(std::fabs(got[i] - expected[i]) <= 1e-12 * (1 + std::fabs(expected[i])));
}

template <class Optimizer, class Step>
void check_run(torch_optimizer reference) {
  CAPTURE(Step::mesh_type::size);
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> run(rank, sw::executor_checks::poison);
    run.initialise(7);
    torch_optimizer by = reference;
    std::vector<torch_optimizer::parameter> expected(2);
    expected[0].x = run.full_parameter("line.weight");
    expected[1].x = run.full_parameter("line.bias");
    expected[1].rank = 1;
    for (int s = 1; s <= steps; ++s) {
      double loss = 0;
      by.step(expected, gradients_of(expected, s, loss), env_at(s));
      run.set_input(0, numbers<double>(rows * in, s, 0));
      run.set_input(1, numbers<double>(rows * out, s, 5));
      run.run(env_at(s));
      CHECK(std::fabs(run.loss() - loss) <= 1e-12 * loss);
    }
    int k = 0;
    for (const char* name : {"line.weight", "line.bias"}) {
      check_near(run.full_parameter(name), expected[static_cast<std::size_t>(k)].x);
      if constexpr (Optimizer::states > 0)
        check_near(run.full_state(name, sw::moment::first), expected[static_cast<std::size_t>(k)].m);
      if constexpr (Optimizer::states > 1)
        check_near(run.full_state(name, sw::moment::second), expected[static_cast<std::size_t>(k)].v);
      if constexpr (Optimizer::states > 2)
        check_near(run.full_state(name, sw::moment::largest_second), expected[static_cast<std::size_t>(k)].largest);
      ++k;
    }
    CHECK(by.clipped == reference.clips_values);
    CHECK(by.largest_used == reference.amsgrad);
    CHECK(by.nearest_zero > 1e-9);  // no sign depends on the order of a sum
  });
}
template <class Optimizer, class... E>
void check_ranks(const torch_optimizer& reference) {
  const auto on = [&]<int N>() {
    check_run<Optimizer, step<double, N, Optimizer, sw::pipeline<>, sw::data_parallel<dp<N>>>>(reference);
    check_run<Optimizer, step<double, N, Optimizer, sw::pipeline<>, sw::fully_shard<dp<N>>>>(reference);
  };
  on.template operator()<1>();
  on.template operator()<2>();
  on.template operator()<3>();
  on.template operator()<4>();
  check_run<Optimizer, step<double, 3, Optimizer, sw::pipeline<>, sw::data_parallel<dp<3>, sw::shard_optimizer_states>>>(
      reference);
}

using dampened = sw::sgd<true, sw::sgd_form::dampened>;
using everything = sw::clip_norm<sw::clip_value<sw::maximize<sw::amsgrad<sw::adamw<true>>>>>;
constexpr torch_optimizer rules_of_everything{.rule = kind::adam,
                                              .amsgrad = true,
                                              .decoupled = true,
                                              .matrices_only = true,
                                              .maximize = true,
                                              .clips_values = true,
                                              .clips_norm = true};

}  // namespace

TEST_CASE("sgd: a dampened momentum") { check_ranks<dampened>({.momentum = true, .dampened = true}); }
TEST_CASE("adam: amsgrad") { check_ranks<sw::amsgrad<sw::adam<>>>({.rule = kind::adam, .amsgrad = true}); }
TEST_CASE("lion") { check_ranks<sw::lion<true>>({.rule = kind::lion, .matrices_only = true}); }
TEST_CASE("adamw with all options") { check_ranks<everything>(rules_of_everything); }

namespace {

// --- lists ----------------------------------------------------------------------------------------------------------------

using tensors = std::vector<std::vector<double>>;

template <class Executor>
tensors held(Executor& run, bool largest) {
  tensors all;
  for (const char* name : {"line.weight", "line.bias"}) {
    const auto add = [&](const auto& v) { all.emplace_back(v.begin(), v.end()); };
    add(run.full_parameter(name));
    add(run.full_state(name, sw::moment::first));
    if (largest) {
      add(run.full_state(name, sw::moment::second));
      add(run.full_state(name, sw::moment::largest_second));
    }
  }
  return all;
}
template <class Executor>
void train(Executor& run, int from, int to) {
  using T = typename Executor::element;
  for (int s = from; s <= to; ++s) {
    run.set_input(0, numbers<T>(rows * in, s, 0));
    run.set_input(1, numbers<T>(rows * out, s, 5));
    run.run(env_at(s));
  }
}
template <class Step>
tensors trained() {
  tensors all;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> run(rank, sw::executor_checks::poison);
    run.initialise(7);
    train(run, 1, steps);
    const tensors own = held(run, true);
    if (rank.index() == 0) all = own;
  });
  return all;
}

template <class Optimizer, class... E>
void check_lists() {
  const tensors one_by_one = trained<step<double, 2, Optimizer, sw::pipeline<>, E...>>();
  CHECK(trained<step<double, 2, Optimizer, sw::pipeline<sw::fused_optimizer>, E...>>() == one_by_one);
  CHECK(trained<step<double, 2, Optimizer, sw::pipeline<sw::foreach_optimizer>, E...>>() == one_by_one);
  CHECK(trained<step<double, 2, Optimizer,
                     sw::pipeline<sw::comm_fusion_with_concat<>, sw::foreach_optimizer, sw::remove_copy_from_optimizer>,
                     E...>>() == one_by_one);
  CHECK(trained<step<double, 2, Optimizer, sw::pipeline<sw::fused_optimizer, sw::split_fused_optimizer<0, 1>>, E...>>() ==
        one_by_one);
}
template <class Step>
constexpr int count_of(sw::op_code op) {
  int n = 0;
  for (int i = 0; i < Step::program.node_count; ++i) n += Step::program.nodes[i].op == op ? 1 : 0;
  return n;
}

}  // namespace

TEST_CASE("lists with options: the bits of single updates") {
  using options = sw::clip_value<sw::maximize<sw::amsgrad<sw::adam<>>>>;
  check_lists<options, sw::data_parallel<dp<2>>>();
  check_lists<options, sw::fully_shard<dp<2>>>();
  using fused = step<double, 2, options, sw::pipeline<sw::fused_optimizer>, sw::data_parallel<dp<2>>>;
  static_assert(count_of<fused>(sw::op_code::adam_with) == 1 && count_of<fused>(sw::op_code::adam) == 0);
}

TEST_CASE("a program without options has nothing of them") {
  using plain = step<double, 2, sw::clip_norm<sw::adamw<>>, sw::pipeline<>, sw::data_parallel<dp<2>>>;
  using clipping = step<double, 2, sw::clip_norm<sw::clip_value<sw::adamw<>>>, sw::pipeline<>, sw::data_parallel<dp<2>>>;
  using largest = step<double, 2, sw::amsgrad<sw::adamw<>>, sw::pipeline<>, sw::data_parallel<dp<2>>>;
  static_assert(count_of<plain>(sw::op_code::adam) == 2 && count_of<plain>(sw::op_code::adam_with) == 0);
  static_assert(clipping::peak_bytes == plain::peak_bytes && clipping::program.node_count == plain::program.node_count);
  static_assert(largest::peak_bytes > plain::peak_bytes);
}

// --- a dynamic loss scale -------------------------------------------------------------------------------------------------

namespace {

// What overflows in its first step, and what has half its scale from the start and one step fewer.
template <class Optimizer, class... E>
void check_skipped(bool largest) {
  using scaled = step<float, 2, Optimizer, sw::pipeline<>, sw::mixed<sw::f16>, sw::dynamic_loss_scale<1024>, E...>;
  using fixed = step<float, 2, Optimizer, sw::pipeline<>, sw::mixed<sw::f16>, sw::loss_scale<512>, E...>;
  sw::launch<sw::mesh<dp<2>>>([&](auto& rank) {
    sw::executor<scaled> a(rank);
    sw::executor<fixed> b(rank);
    a.initialise(3);
    b.initialise(3);
    std::vector<float> bad(rows * in, 1.0F);
    bad[4] = std::numeric_limits<float>::infinity();
    a.set_input(0, bad);
    a.set_input(1, std::vector<float>(rows * out, 1.0F));
    a.run(env_at(1));
    for (int s = 1; s <= 5; ++s) {
      auto ahead = env_at(s + 1);
      a.set_input(0, numbers<float>(rows * in, s, 0));
      a.set_input(1, numbers<float>(rows * out, s, 5));
      a.run(ahead);
      train(b, s, s);
    }
    CHECK(held(a, largest) == held(b, largest));
  });
}

}  // namespace

TEST_CASE("a skipped first step leaves no trace: moments, dampening, lists") {
  check_skipped<dampened, sw::data_parallel<dp<2>>>(false);
  check_skipped<sw::lion<>, sw::fully_shard<dp<2>>>(false);
  check_skipped<sw::clip_norm<sw::clip_value<sw::amsgrad<sw::adam<>>>>, sw::data_parallel<dp<2>>>(true);
}

// --- checkpoints ----------------------------------------------------------------------------------------------------------

TEST_CASE("a checkpoint keeps the largest second moment, under another plan and in flat groups") {
  using options = sw::amsgrad<sw::adamw<>>;
  using from = step<double, 3, options, sw::pipeline<>, sw::fully_shard<dp<3>>>;
  using to = step<double, 2, options, sw::pipeline<>, sw::data_parallel<dp<2>>>;
  using flat = step<double, 2, options, sw::pipeline<>, sw::fully_shard<dp<2>, sw::flat_parameters>>;
  const test::folder scratch;
  tensors then, end;
  sw::launch<from::mesh_type>([&](auto& rank) {
    sw::executor<from> run(rank);
    run.initialise(7);
    train(run, 1, 5);
    const tensors own = held(run, true);
    sw::save(run, scratch.path(), {.step = 5});
    train(run, 6, 8);
    const tensors later = held(run, true);
    if (rank.index() == 0) then = own, end = later;
  });
  const auto check = [&]<class Step>(std::type_identity<Step>) {
    sw::launch<typename Step::mesh_type>([&](auto& rank) {
      sw::executor<Step> run(rank);
      CHECK(sw::load(run, scratch.path()).step == 5);
      CHECK(held(run, true) == then);
      train(run, 6, 8);
      const tensors later = held(run, true);
      for (std::size_t k = 0; k < later.size(); ++k) check_near(later[k], end[k]);
    });
  };
  check(std::type_identity<to>{});
  check(std::type_identity<flat>{});
}

// --- groups of parameters -------------------------------------------------------------------------------------------------

TEST_CASE("a group's dampening is its own") {
  using grouped = step<double, 2, dampened, sw::pipeline<>, sw::data_parallel<dp<2>>, sw::param_group<"bias", "bias">>;
  sw::launch<grouped::mesh_type>([&](auto& rank) {
    sw::executor<grouped> run(rank);
    run.initialise(7);
    torch_optimizer weight_by{.momentum = true, .dampened = true}, bias_by = weight_by;
    std::vector<torch_optimizer::parameter> weight(1), bias(1);
    weight[0].x = run.full_parameter("line.weight");
    bias[0].x = run.full_parameter("line.bias");
    for (int s = 1; s <= steps; ++s) {
      sw::env_of<grouped> env;
      env.step = s;
      env.lr = env_at(s).lr;
      env.momentum = env_at(s).momentum;
      env.dampening = 0;
      env.group<"bias">().dampening = 0.3;
      double loss = 0;
      const auto gradients = gradients_of({weight[0], bias[0]}, s, loss);
      sw::step_env one = env_at(s);
      one.weight_decay = 0;
      bias_by.step(bias, {gradients[1]}, one);
      one.dampening = 0;
      weight_by.step(weight, {gradients[0]}, one);
      run.set_input(0, numbers<double>(rows * in, s, 0));
      run.set_input(1, numbers<double>(rows * out, s, 5));
      run.run(env);
    }
    check_near(run.full_parameter("line.weight"), weight[0].x);
    check_near(run.full_parameter("line.bias"), bias[0].x);
  });
}
