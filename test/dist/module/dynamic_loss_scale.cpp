// SPDX-License-Identifier: Apache-2.0
// dynamic_loss_scale on ranks: steps of a fixed scale, steps that one rank's overflow skips, the scales of torch.amp.GradScaler; with
// pieces of the batch, shards, lists, groups of parameters, clipping and moved updates.
#include <shardwise/shardwise.hpp>

#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/optimizer/optimizer_blocks.hpp>
#include <shardwise/pass/optimizer/split_optimizer.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using sw::dynamic_loss_scale;
using sw::f16;
using sw::mixed;

template <int N>
struct dp : sw::axis<N> {};

// y = down(tanh(up(x))), with uneven rows: 6 and 3 over the ranks.
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<5, 6>, up), (sw::linear<6, 3>, down));
  constexpr auto forward(const auto& x) const { return down(sw::tanh(up(x))); }
};
constexpr int rows = 8;
template <int N>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<rows, 5>, sw::on<dp<N>, sw::shard<0>>>,
                            sw::input_tensor<float, sw::shape<rows, 3>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = sw::cast<float>(model(x)) - t;
    return sw::mean(apart * apart);
  }
};
template <int N, class Optimizer, class Pipeline, class... E>
using step_with = sw::train_step<net, fit<N>, sw::plan<E...>, sw::mesh<dp<N>>, Optimizer, Pipeline>;
template <int N, class... E>
using step = step_with<N, sw::adam<>, sw::pipeline<>, E...>;

std::vector<float> numbers(std::size_t n, int seed) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<float>(std::sin(1.7 * static_cast<double>(i) + static_cast<double>(seed)));
  return v;
}
sw::step_env env_of(int s) {
  sw::step_env env;
  env.step = s;
  env.lr = 0.05;
  env.momentum = 0.9;
  env.weight_decay = 0.1;
  env.max_norm = 0.3;
  return env;
}

using tensors = std::vector<std::vector<float>>;
struct history {
  std::vector<float> losses;
  std::vector<tensors> state;  // after each step: parameters, whole, then what the optimizer keeps for them
  std::vector<sw::scaler_state> scaler;
};
bool same(const tensors& a, const tensors& b) {
  bool all = a.size() == b.size();
  for (std::size_t k = 0; all && k < a.size(); ++k)
    all = a[k].size() == b[k].size() && std::memcmp(a[k].data(), b[k].data(), a[k].size() * sizeof(float)) == 0;
  return all;
}
double apart(const tensors& a, const tensors& b) {
  double most = a.size() == b.size() ? 0 : INFINITY;
  for (std::size_t k = 0; k < a.size() && k < b.size(); ++k)
    for (std::size_t i = 0; i < a[k].size(); ++i)
      most = std::fmax(most, std::fabs(static_cast<double>(a[k][i]) - static_cast<double>(b[k][i])));
  return most;
}

template <class Executor>
tensors kept(Executor& ex) {
  tensors all;
  for (int p = 0; p < ex.parameter_count(); ++p) all.push_back(ex.full_parameter(ex.parameter_name(p)));
  const auto& g = Executor::program();
  for (int i = 0; i < g.node_count; ++i) {
    if (g.nodes[i].op != sw::op_code::state) continue;
    const auto of = sw::attributes_of<sw::leaf_attributes>(g.nodes[i].a);
    if (of.parameter >= 0)
      all.push_back(ex.full_state(ex.parameter_name(static_cast<int>(of.parameter)), static_cast<sw::moment>(of.which)));
  }
  return all;
}
// In step number `bad` one row of the input, which one rank has, is too large for the gradient. Ranks must agree on everything.
template <class Step, class Executor>
void feed(Executor& ex, int s, int bad, int row = rows - 1) {
  auto x = numbers(rows * 5, s);
  auto t = numbers(rows * 3, s + 20);
  if (s == bad) t[static_cast<std::size_t>(row) * 3 + 1] = 3e37F;
  ex.set_input(0, x);
  ex.set_input(1, t);
}
template <class Step>
history train(int steps, int bad = 0, int row = rows - 1) {
  history h;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank, sw::executor_checks::poison);
    ex.initialise(3);
    history own;
    for (int s = 1; s <= steps; ++s) {
      feed<Step>(ex, s, bad, row);
      ex.run(env_of(s));
      own.losses.push_back(ex.loss());
      own.state.push_back(kept(ex));
      if constexpr (sw::runtime::state_of_program(Step::program, sw::scale_state) >= 0)
        own.scaler.push_back(ex.scaler_state());
    }
    for (const auto& s : own.scaler) {
      rank.agree(static_cast<std::uint64_t>(s.scale), "the scale");
      rank.agree(static_cast<std::uint64_t>(s.good_steps), "the good steps");
      rank.agree(static_cast<std::uint64_t>(s.skipped_steps), "the skipped steps");
    }
    if (rank.index() == 0) h = own;
  });
  return h;
}

// --- a fixed scale -----------------------------------------------------------------------------------------------------------

// Of floats that neither vanish nor overflow a power of two takes nothing, and no step is skipped.
template <int N, class Optimizer, class Pipeline = sw::pipeline<>, class... E>
void check_fixed() {
  const history want = train<step_with<N, Optimizer, Pipeline, E...>>(4);
  const history got = train<step_with<N, Optimizer, Pipeline, E..., dynamic_loss_scale<4096>>>(4);
  CHECK(got.losses == want.losses);
  REQUIRE(got.state.size() == 4);
  for (std::size_t s = 0; s < 4; ++s) CHECK(same(got.state[s], want.state[s]));
  CHECK(got.scaler[3].scale == 4096);
  CHECK(got.scaler[3].good_steps == 4);
  CHECK(got.scaler[3].skipped_steps == 0);
}
TEST_CASE("dynamic_loss_scale: steps of a fixed scale have the unscaled ones' bits") {
  check_fixed<1, sw::adam<>, sw::pipeline<>, sw::data_parallel<dp<1>>>();
  check_fixed<2, sw::adam<>, sw::pipeline<>, sw::data_parallel<dp<2>>>();
  check_fixed<2, sw::clip_norm<sw::adamw<>>, sw::pipeline<>, sw::data_parallel<dp<2>>>();
  check_fixed<2, sw::sgd<>, sw::pipeline<>, sw::data_parallel<dp<2>, sw::average_gradients>>();
  check_fixed<2, sw::sgd<>, sw::pipeline<>, sw::fully_shard<dp<2>>>();
  check_fixed<2, sw::clip_norm<sw::sgd<true>>, sw::pipeline<>, sw::fully_shard<dp<2>>>();
}

// --- overflows -----------------------------------------------------------------------------------------------------------------

// Step 3 has a gradient that is infinite, out of a row that one rank has: it leaves everything as it is, and what follows is what a
// run without that step computes, whose numbers of the step count steps that were taken.
template <int N, class Optimizer, class Pipeline, class... E>
void check_skipped(double tolerance = 0) {
  using run = step_with<N, Optimizer, Pipeline, E..., dynamic_loss_scale<4096>>;
  using plain = step_with<N, Optimizer, sw::pipeline<>, E...>;
  constexpr int steps = 5, bad = 3;
  history want;
  sw::launch<sw::mesh<dp<N>>>([&](auto& rank) {
    sw::executor<plain> ex(rank);
    ex.initialise(3);
    history own;
    for (int s = 1, taken = 1; s <= steps; ++s) {
      if (s == bad) continue;
      feed<plain>(ex, s, 0);
      ex.run(env_of(taken++));
      own.state.push_back(kept(ex));
    }
    if (rank.index() == 0) want = own;
  });
  for (const int row : {0, rows - 1}) {
    const history got = train<run>(steps, bad, row);
    REQUIRE(got.state.size() == steps);
    CHECK(same(got.state[bad - 1], got.state[bad - 2]));
    CHECK_FALSE(same(got.state[bad], got.state[bad - 1]));
    CHECK(got.scaler[bad - 2].good_steps == 2);
    CHECK(got.scaler[bad - 1].scale == 2048);
    CHECK(got.scaler[bad - 1].good_steps == 0);
    CHECK(got.scaler[bad - 1].skipped_steps == 1);
    CHECK(got.scaler[steps - 1].good_steps == 2);
    for (int s = 1, taken = 0; s <= steps; ++s) {
      if (s == bad) continue;
      tensors mine = got.state[static_cast<std::size_t>(s - 1)], theirs = want.state[static_cast<std::size_t>(taken++)];
      mine.resize(4), theirs.resize(4);  // parameters: passes may keep other states
      if (tolerance == 0) CHECK(same(mine, theirs));
      else CHECK(apart(mine, theirs) <= tolerance);
    }
  }
}
TEST_CASE("dynamic_loss_scale: a step that overflows on one rank is skipped on all") {
  check_skipped<1, sw::adam<>, sw::pipeline<>, sw::data_parallel<dp<1>>>();
  check_skipped<2, sw::adam<>, sw::pipeline<>, sw::data_parallel<dp<2>>>();
  check_skipped<2, sw::clip_norm<sw::adamw<>>, sw::pipeline<>, sw::data_parallel<dp<2>>>();
  check_skipped<2, sw::clip_norm<sw::sgd<true>>, sw::pipeline<>, sw::data_parallel<dp<2>>>();
}
TEST_CASE("dynamic_loss_scale: the same with parameters or optimizer states in shards") {
  check_skipped<2, sw::adamw<>, sw::pipeline<>, sw::fully_shard<dp<2>>>();
  check_skipped<3, sw::clip_norm<sw::adam<>>, sw::pipeline<>, sw::fully_shard<dp<3>>>();
  check_skipped<2, sw::clip_norm<sw::adam<>>, sw::pipeline<>, sw::data_parallel<dp<2>, sw::shard_optimizer_states>>();
  check_skipped<2, sw::sgd<true>, sw::pipeline<>, sw::data_parallel<dp<2>, sw::shard_optimizer_states>>();
}
TEST_CASE("dynamic_loss_scale: the same with pieces of the batch and with groups of parameters") {
  check_skipped<2, sw::adam<>, sw::pipeline<>, sw::data_parallel<dp<2>>, sw::accumulate<2>>();
  check_skipped<2, sw::clip_norm<sw::adam<>>, sw::pipeline<>, sw::fully_shard<dp<2>>, sw::accumulate<4>>();
  check_skipped<2, sw::adam<>, sw::pipeline<>, sw::data_parallel<dp<2>>, sw::at<"down", sw::param_group<"last">>>();
}
template <class Optimizer>
void check_lists() {
  using whole = sw::data_parallel<dp<2>>;
  using in_place = sw::comm_fusion_in_place<>;
  check_skipped<2, Optimizer, sw::pipeline<sw::fused_optimizer>, whole>(1e-6);
  check_skipped<2, Optimizer, sw::pipeline<sw::foreach_optimizer>, whole>(1e-6);
  check_skipped<2, Optimizer, sw::pipeline<sw::fused_optimizer, in_place, sw::remove_copy_from_optimizer>, whole>(1e-6);
  check_skipped<2, Optimizer, sw::pipeline<sw::foreach_optimizer, sw::remove_copy_from_optimizer>, whole>(1e-6);
  check_skipped<2, Optimizer, sw::pipeline<sw::fused_optimizer, sw::split_fused_optimizer<0, 1>>, whole>(1e-6);
  check_skipped<2, Optimizer, sw::pipeline<sw::fused_optimizer>, sw::data_parallel<dp<2>, sw::shard_optimizer_states>>(1e-6);
  check_skipped<2, Optimizer, sw::pipeline<sw::merge_common, sw::fuse_kernels>, whole>(1e-6);
}
TEST_CASE("dynamic_loss_scale: the same with updates over lists") { check_lists<sw::adam<>>(); }
TEST_CASE("dynamic_loss_scale: the same with clipped updates over lists") { check_lists<sw::clip_norm<sw::adamw<>>>(); }

// --- the scale -------------------------------------------------------------------------------------------------------------------

// torch.amp.GradScaler, as its documentation has it.
struct grad_scaler {
  double scale;
  int growth_tracker = 0, skipped = 0;
  void update(bool overflow, double growth, double backoff, int interval) {
    if (overflow) {
      scale *= backoff;
      growth_tracker = 0;
      ++skipped;
    } else if (++growth_tracker == interval) {
      scale *= growth;
      growth_tracker = 0;
    }
  }
};
template <class Scaler>
void check_sequence(double growth, double backoff, int interval) {
  using run = step<2, sw::data_parallel<dp<2>>, Scaler>;
  sw::launch<sw::mesh<dp<2>>>([&](auto& rank) {
    sw::executor<run> ex(rank);
    ex.initialise(3);
    grad_scaler model{static_cast<double>(Scaler::shardwise_loss_scale)};
    CHECK(ex.scaler_state().scale == model.scale);
    for (int s = 1; s <= 24; ++s) {
      const bool bad = s == 2 || s == 9 || s == 10 || s == 17;
      feed<run>(ex, s, bad ? s : 0, s % rows);
      ex.run(env_of(s));
      model.update(bad, growth, backoff, interval);
      CHECK(ex.scaler_state().scale == model.scale);
      CHECK(ex.scaler_state().good_steps == model.growth_tracker);
      CHECK(ex.scaler_state().skipped_steps == model.skipped);
    }
  });
}
TEST_CASE("dynamic_loss_scale: grows and backs off as GradScaler does") {
  check_sequence<dynamic_loss_scale<65536, 3>>(2, 0.5, 3);
  check_sequence<dynamic_loss_scale<16, 2, 4, 8>>(4, 0.125, 2);
  check_sequence<dynamic_loss_scale<1, 1, 1, 2>>(1, 0.5, 1);
}

TEST_CASE("dynamic_loss_scale: in f16 it comes down from where nothing is finite, and the model learns") {
  using run = step<2, sw::data_parallel<dp<2>>, mixed<f16>, dynamic_loss_scale<(std::int64_t{1} << 30)>>;
  sw::launch<sw::mesh<dp<2>>>([](auto& rank) {
    sw::executor<run> ex(rank);
    ex.initialise(3);
    const tensors before = kept(ex);
    float first = 0;
    for (int s = 1; s <= 40; ++s) {
      feed<run>(ex, 1, 0);
      sw::step_env env = env_of(s);
      env.weight_decay = 0;
      ex.run(env);
      if (s == 1) first = ex.loss();
      if (s == 5) CHECK(same(kept(ex), before));
    }
    const auto skipped = ex.scaler_state().skipped_steps;
    CHECK(skipped > 5);
    CHECK(skipped < 20);
    CHECK(ex.scaler_state().scale == std::ldexp(1.0, 30 - static_cast<int>(skipped)));
    CHECK(ex.scaler_state().good_steps == 40 - skipped);
    CHECK(ex.loss() < 0.8F * first);
  });
}

// --- its state ---------------------------------------------------------------------------------------------------------------------

TEST_CASE("dynamic_loss_scale: its state is copied, set and reset with the optimizer's") {
  using run = step<2, sw::data_parallel<dp<2>>, dynamic_loss_scale<64, 5>>;
  using shards = step<2, sw::fully_shard<dp<2>>, dynamic_loss_scale<64, 5>>;
  sw::launch<sw::mesh<dp<2>>>([](auto& rank) {
    sw::executor<run> a(rank);
    sw::executor<shards> b(rank);
    a.initialise(3);
    for (int s = 1; s <= 3; ++s) {
      feed<run>(a, s, 2);
      a.run(env_of(s));
    }
    b.copy_parameters(a);
    b.copy_state(a);
    CHECK(b.scaler_state().scale == 32);
    CHECK(b.scaler_state().good_steps == 1);
    CHECK(b.scaler_state().skipped_steps == 1);
    feed<run>(a, 4, 0);
    feed<shards>(b, 4, 0);
    a.run(env_of(4));
    b.run(env_of(4));
    CHECK(apart(kept(a), kept(b)) < 1e-6);
    a.set_scaler_state({.scale = 1024, .good_steps = 4, .skipped_steps = 7});
    feed<run>(a, 5, 0);
    a.run(env_of(12));
    CHECK(a.scaler_state().scale == 2048);
    CHECK(a.scaler_state().good_steps == 0);
    CHECK(a.scaler_state().skipped_steps == 7);
    a.reset_states();
    CHECK(a.scaler_state().scale == 64);
    CHECK(a.scaler_state().good_steps == 0);
    CHECK(a.scaler_state().skipped_steps == 0);
    CHECK_THROWS_WITH_AS(a.set_scaler_state({.scale = 0}), doctest::Contains("a loss scale is a number above 0"),
                         std::invalid_argument);
    CHECK_THROWS_WITH_AS(a.set_scaler_state({.scale = 2, .good_steps = -1}), doctest::Contains("-1 good and 0 skipped"),
                         std::invalid_argument);
  });
}

TEST_CASE("dynamic_loss_scale: with updates that run in the next iteration") {
  using bucketed =
      step_with<2, sw::adam<>, sw::pipeline<sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>,
                sw::data_parallel<dp<2>>, mixed<f16>, dynamic_loss_scale<1024, 2>>;
  using iterations = sw::iterated<bucketed, sw::iter_move_grads_and_optimizers<"all_reduce", "cast">>;
  sw::launch<sw::mesh<dp<2>>>([](auto& rank) {
    sw::executor<bucketed> run(rank);
    sw::iterated_executor<iterations> later(rank);
    run.initialise(3);
    later.main().initialise(3);
    for (int s = 1; s <= 6; ++s) {
      feed<bucketed>(run, s, 3);
      feed<typename iterations::main>(later.main(), s, 3);
      run.run(env_of(s));
      later.run(env_of(s), s == 6);
      CHECK(later.loss() == run.loss());
    }
    CHECK(same(kept(run), kept(later.main())));
    CHECK(later.main().scaler_state().scale == run.scaler_state().scale);
  });
}

}  // namespace
