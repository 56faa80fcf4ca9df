// SPDX-License-Identifier: Apache-2.0
// mixed on ranks: the bits of a step with casts by hand, on uneven rows, whole and in shards; sums in bf16; passes; f16 with a scaled
// loss; eager training. A language model: mixed_language_model.cpp.
#include <shardwise/shardwise.hpp>

#include <shardwise/module/eager_gradient.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/overlap.hpp>
#include <shardwise/pass/communication/prefetch.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/fuse/merge_products.hpp>
#include <shardwise/pass/iteration/iter_move.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/pass/rematerialise/rematerialise.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/runtime/executor/iterated.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstring>

namespace {

namespace sw = shardwise;
using sw::bf16;
using sw::f16;
using sw::mixed;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct rep : sw::axis<N> {};

// --- a perceptron, and the same with its casts written down -----------------------------------------------------------------

// y = down(tanh(up(x))), with uneven rows: 6 and 3 over the ranks.
template <class Bound = sw::unbound>
struct plain_net : sw::module<plain_net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<5, 6>, up), (sw::linear<6, 3>, down));
  constexpr auto forward(const auto& x) const { return down(sw::tanh(up(x))); }
};
template <class Low>
struct by_hand {
  template <int In, int Out, class Bound = sw::unbound>
  struct linear_layer : sw::module<linear_layer<In, Out, Bound>, Bound> {
    template <class B>
    using rebound = linear_layer<In, Out, B>;
    SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<Out, In>, sw::init::uniform_fan<In>>, weight),
                      (sw::parameter<sw::shape<Out>, sw::init::uniform_fan<In>>, bias));
    constexpr auto forward(const auto& x) const {
      return sw::linear_product(sw::cast<Low>(x), sw::cast<Low>(weight)) + sw::cast<Low>(bias);
    }
  };
  template <class Bound = sw::unbound>
  struct net : sw::module<net<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (linear_layer<5, 6>, up), (linear_layer<6, 3>, down));
    constexpr auto forward(const auto& x) const { return down(sw::tanh(up(x))); }
  };
};

// Rows of the batch over all axes; the loss is computed in float.
template <class... Axes>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<7, 5>, sw::on<Axes, sw::shard<0>>...>,
                            sw::input_tensor<float, sw::shape<7, 3>, sw::on<Axes, sw::shard<0>>...>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = sw::cast<float>(model(x)) - t;
    return sw::mean(apart * apart);
  }
};
template <template <class> class Model, class Mesh, class Task, class Optimizer, class Pipeline, class... E>
using step_of = sw::train_step<Model, Task, sw::plan<E...>, Mesh, Optimizer, Pipeline>;
template <template <class> class Model, int N, class... E>
using step = step_of<Model, sw::mesh<dp<N>>, fit<dp<N>>, sw::clip_norm<sw::adam<>>, sw::pipeline<>, E...>;

std::vector<float> numbers(std::size_t n, int seed, double scale = 1) {
  std::vector<float> v(n);
  for (std::size_t i = 0; i < n; ++i)
    v[i] = static_cast<float>(scale * std::sin(1.7 * static_cast<double>(i) + static_cast<double>(seed)));
  return v;
}

struct history {
  std::vector<float> losses;
  std::vector<std::vector<float>> parameters;  // whole, after the last step
};
bool operator==(const history& a, const history& b) {
  const auto same = [](const std::vector<float>& x, const std::vector<float>& y) {
    return x.size() == y.size() && std::memcmp(x.data(), y.data(), x.size() * sizeof(float)) == 0;
  };
  bool all = same(a.losses, b.losses) && a.parameters.size() == b.parameters.size();
  for (std::size_t k = 0; all && k < a.parameters.size(); ++k) all = same(a.parameters[k], b.parameters[k]);
  return all;
}
double apart(const history& a, const history& b) {
  double most = a.parameters.size() == b.parameters.size() ? 0 : INFINITY;
  for (std::size_t k = 0; k < std::min(a.parameters.size(), b.parameters.size()); ++k)
    for (std::size_t i = 0; i < a.parameters[k].size(); ++i)
      most = std::max(most, std::abs(static_cast<double>(a.parameters[k][i]) - static_cast<double>(b.parameters[k][i])));
  for (std::size_t i = 0; i < a.losses.size(); ++i)
    most = std::max(most, std::abs(static_cast<double>(a.losses[i]) - static_cast<double>(b.losses[i])));
  return most;
}

// Targets this small make gradients small.
template <class Step>
history train(int steps = 4, double scale = 1, double max_norm = 0.5) {
  history h;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank, sw::executor_checks::poison);
    ex.initialise(3);
    history own;
    for (int s = 1; s <= steps; ++s) {
      ex.set_input(0, numbers(35, s));
      ex.set_input(1, numbers(21, s + 20, scale));
      sw::step_env env;
      env.step = s;
      env.lr = 0.02;
      env.max_norm = max_norm;
      ex.run(env);
      own.losses.push_back(ex.loss());
    }
    for (int i = 0; i < ex.parameter_count(); ++i) own.parameters.push_back(ex.full_parameter(ex.parameter_name(i)));
    if (rank.index() == 0) h = own;
  });
  return h;
}

// Law: the step is the one with its casts written by hand, bit for bit.
template <int N>
void check_by_hand() {
  CAPTURE(N);
  const history hand = train<step<by_hand<bf16>::net, N, sw::data_parallel<dp<N>>>>();
  CHECK(train<step<plain_net, N, sw::data_parallel<dp<N>>, mixed<bf16>>>() == hand);
  CHECK(train<step<plain_net, N, sw::fully_shard<dp<N>>, mixed<bf16>>>() == hand);
  CHECK(train<step<plain_net, N, sw::fully_shard<dp<N>>, sw::at<"*", mixed<bf16>>>>() == hand);
  CHECK(train<step<plain_net, N, sw::data_parallel<dp<N>, sw::shard_optimizer_states>, mixed<bf16>>>() == hand);
  const history whole = train<step<plain_net, N, sw::data_parallel<dp<N>>>>();
  CHECK_FALSE(whole == hand);
  CHECK(apart(whole, hand) < 0.05);
}
TEST_CASE("mixed: the bits of casts by hand, on 1 to 4 ranks, whole and in shards") {
  check_by_hand<1>();
  check_by_hand<2>();
  check_by_hand<3>();
  check_by_hand<4>();
}

TEST_CASE("reduce_dtype_default: sums are in float; in bf16 where that is said, alike in shards and whole") {
  using wide = step<plain_net, 3, sw::data_parallel<dp<3>>, mixed<bf16>>;
  using low = step<plain_net, 3, sw::data_parallel<dp<3>>, mixed<bf16, sw::reduce_dtype<bf16>>>;
  using shards = step<plain_net, 3, sw::fully_shard<dp<3>>, mixed<bf16, sw::reduce_dtype<bf16>>>;
  const history h = train<low>();
  CHECK(train<shards>() == h);
  CHECK_FALSE(train<wide>() == h);
  CHECK(apart(train<wide>(), h) < 0.05);
}

TEST_CASE("mixed: hybrid shards, two axes, pieces and buckets keep the bits") {
  using mesh = sw::mesh<rep<2>, dp<2>>;
  using task = fit<rep<2>, dp<2>>;
  using optimizer = sw::clip_norm<sw::adam<>>;
  const history hand = train<step_of<by_hand<bf16>::net, mesh, task, optimizer, sw::pipeline<>, sw::data_parallel<rep<2>>,
                                     sw::data_parallel<dp<2>>>>();
  const auto near = [&](const history& h) {
    CHECK(apart(h, hand) < 1e-5);  // float sums in another order
  };
  near(train<step_of<plain_net, mesh, task, optimizer, sw::pipeline<>, sw::fully_shard<dp<2>, sw::replicate_over<rep<2>>>,
                     mixed<bf16>>>());
  near(train<step_of<plain_net, mesh, task, optimizer, sw::pipeline<>, sw::fully_shard<rep<2>, sw::shard_over<dp<2>>>,
                     mixed<bf16>>>());
  const history two = train<step<by_hand<bf16>::net, 2, sw::data_parallel<dp<2>>>>();
  CHECK(train<step<plain_net, 2, sw::data_parallel<dp<2>, sw::buckets<1>>, mixed<bf16>>>() == two);
}

// --- results ------------------------------------------------------------------------------------------------------------------

struct give {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<7, 5>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
TEST_CASE("mixed: a forward step gives what modules return, in two bytes or in float") {
  sw::launch<sw::mesh<dp<1>>>([](auto& rank) {
    sw::executor<sw::forward_step<plain_net, give, sw::plan<mixed<bf16>>, sw::mesh<dp<1>>>> low(rank);
    sw::executor<sw::forward_step<plain_net, give, sw::plan<mixed<bf16, sw::output_dtype<float>>>, sw::mesh<dp<1>>>> wide(
        rank);
    sw::executor<sw::forward_step<by_hand<bf16>::net, give, sw::plan<>, sw::mesh<dp<1>>>> hand(rank);
    const auto results = [&](auto& ex) {
      ex.initialise(3);
      ex.set_input(0, numbers(35, 1));
      ex.run(sw::step_env{});
    };
    results(low), results(wide), results(hand);
    const auto a = low.template output<bf16>(0), c = hand.template output<bf16>(0);
    const auto b = wide.template output<float>(0);
    REQUIRE(a.data.size() == 21);
    for (std::size_t i = 0; i < a.data.size(); ++i) {
      CHECK(a.data[i].bits == c.data[i].bits);
      CHECK(b.data[i] == static_cast<float>(a.data[i]));
    }
  });
}

// --- passes -------------------------------------------------------------------------------------------------------------------

template <int N, class... E>
struct with_passes {
  template <class... P>
  using run = step_of<plain_net, sw::mesh<dp<N>>, fit<dp<N>>, sw::clip_norm<sw::adam<>>, sw::pipeline<P...>, E...>;
  static constexpr double clips = 0.05;  // less than the norm
  template <class... P>
  static void check(const history& want) {
    CHECK(apart(train<run<P...>>(4, 1, clips), want) < 1e-6);
  }
  static void check_all() {
    const history want = train<run<>>(4, 1, clips);
    check<sw::merge_common>(want);
    check<sw::fuse_kernels>(want);
    check<sw::rematerialise<20>, sw::fuse_kernels>(want);
    check<sw::fused_optimizer, sw::comm_fusion_in_place<>>(want);
    check<sw::comm_fusion_with_concat<>>(want);
    check<sw::merge_products, sw::fuse_kernels>(want);
    check<sw::prefetch<1>>(want);
  }
};
TEST_CASE("mixed: passes keep what a step computes") {
  with_passes<1, sw::data_parallel<dp<1>>, mixed<bf16>>::check_all();
  with_passes<2, sw::data_parallel<dp<2>>, mixed<bf16>>::check_all();
  with_passes<2, sw::data_parallel<dp<2>>, mixed<bf16, sw::reduce_dtype<bf16>>>::check_all();
  with_passes<2, sw::fully_shard<dp<2>>, sw::at<"*", sw::fully_shard<dp<2>>>, mixed<bf16>>::check_all();
}

TEST_CASE("mixed: updates that run in the next iteration are seen by its casts") {
  using bucketed = step_of<plain_net, sw::mesh<dp<2>>, fit<dp<2>>, sw::adam<>,
                           sw::pipeline<sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>,
                           sw::data_parallel<dp<2>>, mixed<bf16>>;
  using iterations =
      sw::iterated<bucketed, sw::iter_move_grads_and_optimizers<"all_reduce", "cast">, sw::raise_comms, sw::sink_waits>;
  static_assert(iterations::kept_values > 0);
  sw::launch<sw::mesh<dp<2>>>([](auto& rank) {
    sw::executor<bucketed> run(rank);
    sw::iterated_executor<iterations> later(rank);
    run.initialise(3);
    later.main().initialise(3);
    for (int s = 1; s <= 3; ++s) {
      sw::step_env env;
      env.step = s;
      env.lr = 0.02;
      const auto feed = [&](auto& ex) {
        ex.set_input(0, numbers(35, s));
        ex.set_input(1, numbers(21, s + 20));
      };
      feed(run);
      run.run(env);
      feed(later.main());
      later.run(env, s == 3);
      CHECK(later.loss() == run.loss());
    }
  });
}

// --- f16 ----------------------------------------------------------------------------------------------------------------------

TEST_CASE("loss_scale: the same bits where nothing is lost, and gradients that f16 would lose") {
  using plain = step<plain_net, 2, sw::data_parallel<dp<2>>, mixed<f16>, sw::loss_scale<1>>;
  using scaled = step<plain_net, 2, sw::data_parallel<dp<2>>, mixed<f16>, sw::loss_scale<256>>;
  using sharded = step<plain_net, 2, sw::fully_shard<dp<2>>, mixed<f16>, sw::loss_scale<256>>;
  using whole = step<plain_net, 2, sw::data_parallel<dp<2>>>;
  using whole_scaled = step<plain_net, 2, sw::data_parallel<dp<2>>, sw::loss_scale<4096>>;
  // of floats that neither vanish nor overflow a power of two takes nothing
  CHECK(train<whole_scaled>() == train<whole>());
  CHECK(train<sharded>() == train<scaled>());
  CHECK(apart(train<scaled>(), train<whole>()) < 0.01);
  CHECK(apart(train<plain>(), train<whole>()) < 0.01);
}

template <class Optimizer, class... P>
using scaled_with = step_of<plain_net, sw::mesh<dp<2>>, fit<dp<2>>, Optimizer, sw::pipeline<P...>, sw::data_parallel<dp<2>>,
                            sw::loss_scale<64>>;
template <class Optimizer>
void check_scaled() {
  using whole = step_of<plain_net, sw::mesh<dp<2>>, fit<dp<2>>, Optimizer, sw::pipeline<>, sw::data_parallel<dp<2>>>;
  const history want = train<whole>();
  CHECK(train<scaled_with<Optimizer>>() == want);
  CHECK(apart(train<scaled_with<Optimizer, sw::fused_optimizer>>(), want) < 1e-6);
  CHECK(
      apart(train<scaled_with<Optimizer, sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>>(),
            want) < 1e-6);
}
TEST_CASE("loss_scale: updates over lists and without clipping divide gradients, too") {
  check_scaled<sw::adam<>>();
  check_scaled<sw::clip_norm<sw::adamw<>>>();
}

// One gradient of 2^-26, which f16 has no number for.
template <class Bound = sw::unbound>
struct faint : sw::module<faint<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<4>, sw::init::ones>, gain));
  constexpr auto forward(const auto& x) const { return x * gain; }
};
struct faint_task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4>>>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    return sw::sum(sw::cast<float>(model(x))) * 1.4901161193847656e-8;
  }
};
template <std::int64_t Factor>
float faint_step() {
  using run = sw::train_step<faint, faint_task, sw::plan<mixed<f16>, sw::loss_scale<Factor>>, sw::mesh<dp<1>>, sw::sgd<>>;
  float gain = 0;
  sw::launch<sw::mesh<dp<1>>>([&](auto& rank) {
    sw::executor<run> ex(rank);
    ex.initialise(1);
    ex.set_input(0, std::vector<float>(4, 1));
    sw::step_env env;
    env.lr = 1 << 24;
    ex.run(env);
    gain = ex.full_parameter("gain")[2];
  });
  return gain;
}
TEST_CASE("loss_scale: what is lost without it is there with it") {
  CHECK(faint_step<1>() == 1);
  CHECK(faint_step<1024>() == 0.75F);  // 1 - 2^24 2^-26
}

// --- eager models ---------------------------------------------------------------------------------------------------------------

// The eager optimizer is given floats; the compiled step's reads gradients of two bytes where no rank sums floats.
template <int N, class Optimizer, class... E>
void check_eager() {
  using mesh = sw::mesh<dp<N>>;
  using plan = sw::plan<E...>;
  using compiled = step_of<plain_net, mesh, fit<dp<N>>, Optimizer, sw::pipeline<>, E...>;
  sw::launch<mesh>([](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<compiled, rank_type> program(rank);
    program.initialise(3);
    sw::eager on(rank);
    sw::bind_eager<plain_net, plan, mesh, float, rank_type> model{};
    sw::initialise(model, on, 3);
    sw::eager_optimizer<Optimizer, decltype(model)> optimizer;
    using input = sw::dtensor_of<float, sw::shape<7, 5>, mesh, sw::on<dp<N>, sw::shard<0>>>;
    using target = sw::dtensor_of<float, sw::shape<7, 3>, mesh, sw::on<dp<N>, sw::shard<0>>>;
    for (int s = 1; s <= 3; ++s) {
      const auto xs = numbers(35, s), ts = numbers(21, s + 20);
      sw::step_env env;
      env.step = s;
      env.lr = 0.02;
      env.momentum = 0.9;
      env.weight_decay = 0.1;
      env.max_norm = 0.1;
      program.set_input(0, xs);
      program.set_input(1, ts);
      program.run(env);
      on.start_step(env.seed, env.step);
      const auto [loss, gradients] =
          sw::value_and_grad(fit<dp<N>>{})(model, input::distribute(on, xs), target::distribute(on, ts));
      CHECK(loss.item() == program.loss());
      optimizer.step(model, gradients, env);
      sw::for_each_parameter(model, [&](const std::string& path, auto& p) {
        const auto theirs = program.parameter(program.parameter_index(path));
        const auto ours = p.to_local().data;
        CHECK_MESSAGE(std::equal(ours.begin(), ours.end(), theirs.begin(), theirs.end()), path, " differs in step ", s);
      });
    }
  });
}
TEST_CASE("mixed: eager training is the compiled step") {
  check_eager<2, sw::adam<>, sw::data_parallel<dp<2>>, mixed<bf16>>();
  check_eager<2, sw::adam<>, sw::fully_shard<dp<2>>, mixed<bf16>>();
  check_eager<2, sw::adam<>, sw::fully_shard<dp<2>>, mixed<bf16, sw::reduce_dtype<bf16>>>();
  check_eager<2, sw::adam<>, sw::data_parallel<dp<2>>, mixed<f16>, sw::loss_scale<256>>();
}
TEST_CASE("mixed: updates of gradients of two bytes have the bits of updates of their casts") {
  check_eager<1, sw::clip_norm<sw::adamw<>>, sw::data_parallel<dp<1>>, mixed<bf16>>();
  check_eager<1, sw::clip_norm<sw::sgd<true>>, sw::data_parallel<dp<1>>, mixed<bf16>>();
  check_eager<1, sw::sgd<>, sw::fully_shard<dp<1>>, mixed<f16>, sw::loss_scale<256>>();
  check_eager<3, sw::clip_norm<sw::adam<>>, sw::fully_shard<dp<3>>, mixed<bf16, sw::reduce_dtype<bf16>>>();
}

}  // namespace
