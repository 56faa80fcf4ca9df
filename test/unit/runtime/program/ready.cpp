// SPDX-License-Identifier: Apache-2.0
// A run begins with everything set: numbers that the optimizer reads, inputs, parameters, states. What is not set is named.
#include <shardwise/module/iterated.hpp>
#include <shardwise/runtime/executor/iterated.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <thrown.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using line = sw::mesh<dp<N>>;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 3>, first), (sw::linear<3, 2>, second));
  constexpr auto forward(const auto& x) const { return second(sw::relu(first(x))); }
};

template <int N, bool Drops = false>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<6, 4>, sw::on<dp<N>, sw::shard<0>>>,
                            sw::input_tensor<double, sw::shape<6, 2>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    if constexpr (Drops) return sw::mean(sw::dropout(error * error, 0.5));
    else return sw::mean(error * error);
  }
};

template <class Optimizer, int N = 2, bool Drops = false>
using step_of =
    sw::train_step<net, task<N, Drops>, sw::plan<sw::data_parallel<dp<N>>>, line<N>, Optimizer, sw::pipeline<>, double>;

std::vector<double> numbers(std::size_t n, double at) {
  std::vector<double> v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = std::sin(at + 0.7 * static_cast<double>(i));
  return v;
}
void feed(auto& ex) {
  ex.set_input(0, numbers(24, 0.3));
  ex.set_input(1, numbers(12, 1.1));
}

// What `call` throws in each of N threads, or on a rank without peers.
template <int N>
std::string told(const auto& call) {
  return test::thrown([&] { sw::launch<line<N>>(call); });
}
template <int N>
std::string told_alone(const auto& call) {
  return test::thrown([&] { sw::launch_fake<line<N>>(N - 1, call); });
}
bool begins(const std::string& text, const std::string& with) { return text.rfind(with, 0) == 0; }

// A run of Step that lacks nothing but what `env` lacks.
template <class Step>
std::string run_with(const sw::step_env& env) {
  constexpr int n = Step::mesh_type::size;
  const auto call = [&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(3);
    feed(ex);
    ex.run(env);
  };
  const std::string threads = told<n>(call);
  CHECK(told_alone<n>(call) == threads);
  return threads;
}

sw::step_env complete() {
  sw::step_env env;
  env.step = 1;
  env.lr = 1e-2;
  return env;
}

TEST_CASE("a learning rate that nobody has set is refused, and an explicit 0 is not") {
  sw::step_env env;
  env.step = 1;
  CHECK(
      begins(run_with<step_of<sw::sgd<>>>(env), "shardwise: run: env.lr is not a number, as it is while nobody has set it"));
  CHECK(begins(run_with<step_of<sw::adam<>>>(env),
               "shardwise: run: env.lr is not a number, as it is while nobody has set it"));
  for (const double lr : {0.0, 1e-3}) {
    env.lr = lr;
    CHECK(run_with<step_of<sw::adam<>>>(env) == "nothing was thrown");
  }
  env.lr = -1e-3;
  CHECK(run_with<step_of<sw::adam<>>>(env) == "shardwise: run: env.lr is -0.001; a learning rate is finite and at least 0");
  env.lr = std::numeric_limits<double>::infinity();
  CHECK(run_with<step_of<sw::sgd<>>>(env) == "shardwise: run: env.lr is inf; a learning rate is finite and at least 0");
}

TEST_CASE("what an optimizer divides by, decays or scales with is checked as PyTorch does") {
  using adam = step_of<sw::adam<>>;
  using clipped = step_of<sw::clip_norm<sw::sgd<>>>;
  sw::step_env env = complete();
  env.step = 0;
  CHECK(begins(run_with<adam>(env),
               "shardwise: run: env.step is 0; Adam divides by 1 - beta^step, so the first step is number 1"));
  CHECK(run_with<step_of<sw::sgd<>>>(env) == "nothing was thrown");  // reads no step
  env = complete();
  env.beta1 = 1;
  CHECK(run_with<adam>(env) == "shardwise: run: env.beta1 is 1; Adam's betas are at least 0 and less than 1");
  env = complete();
  env.beta2 = -0.5;
  CHECK(run_with<adam>(env) == "shardwise: run: env.beta2 is -0.5; Adam's betas are at least 0 and less than 1");
  env = complete();
  env.eps = -1e-8;
  CHECK(run_with<adam>(env) == "shardwise: run: env.eps is -1e-08; Adam's eps is finite and at least 0");
  env = complete();
  env.weight_decay = -1;
  CHECK(run_with<adam>(env) == "shardwise: run: env.weight_decay is -1; a weight decay is finite and at least 0");
  env = complete();
  CHECK(begins(run_with<clipped>(env), "shardwise: run: env.max_norm is not a number, as it is while nobody has set it"));
  env.max_norm = 0;
  CHECK(begins(run_with<clipped>(env), "shardwise: run: env.max_norm is 0; clip_norm scales gradients to that norm"));
  env.max_norm = 1;
  CHECK(run_with<clipped>(env) == "nothing was thrown");
  env = complete();
  CHECK(begins(run_with<step_of<sw::sgd<true>>>(env),
               "shardwise: run: env.momentum is not a number, as it is while nobody has set it"));
  env.momentum = 0;
  CHECK(run_with<step_of<sw::sgd<true>>>(env) == "nothing was thrown");
}

TEST_CASE("what options read is checked, and what they do not read is not") {
  using dampened = step_of<sw::sgd<true, sw::sgd_form::dampened>>;
  using values = step_of<sw::clip_value<sw::sgd<>>>;
  using lion = step_of<sw::lion<>>;
  sw::step_env env = complete();
  env.momentum = 0.9;
  CHECK(begins(run_with<dampened>(env), "shardwise: run: env.dampening is not a number, as it is while nobody has set it"));
  env.dampening = std::numeric_limits<double>::infinity();
  CHECK(run_with<dampened>(env) == "shardwise: run: env.dampening is inf; a dampening is finite");
  env.dampening = 0.1;
  CHECK(run_with<dampened>(env) == "nothing was thrown");
  env.step = 0;
  CHECK(
      begins(run_with<dampened>(env), "shardwise: run: env.step is 0; a dampened momentum begins with the whole gradient"));
  env = complete();
  CHECK(begins(run_with<values>(env), "shardwise: run: env.clip_value is not a number, as it is while nobody has set it"));
  env.clip_value = 0;
  CHECK(begins(run_with<values>(env),
               "shardwise: run: env.clip_value is 0; clip_value leaves elements of gradients that are"));
  env.clip_value = 0.5;
  CHECK(run_with<values>(env) == "nothing was thrown");
  env = complete();
  env.beta2 = 1;
  CHECK(run_with<lion>(env) == "shardwise: run: env.beta2 is 1; Lion's betas are at least 0 and less than 1");
  env = complete();
  env.step = 0;
  env.eps = -1;
  CHECK(run_with<lion>(env) == "nothing was thrown");  // reads neither
  CHECK(begins(run_with<step_of<sw::amsgrad<sw::adam<>>>>(env), "shardwise: run: env.eps is -1"));
}

TEST_CASE("a step that draws random numbers by its number is told when it has none") {
  using drops = step_of<sw::sgd<>, 2, true>;
  sw::step_env env = complete();
  env.step = 0;
  CHECK(begins(run_with<drops>(env), "shardwise: run: env.step is 0; the step draws random numbers by its number"));
  env.step = 1;
  CHECK(run_with<drops>(env) == "nothing was thrown");
}

TEST_CASE("an eager optimizer asks for the same numbers") {
  const auto call = [](const sw::step_env& env) {
    return told<2>([&](auto& rank) {
      sw::eager on(rank);
      sw::bind_eager<net, sw::plan<sw::data_parallel<dp<2>>>, line<2>, double> model{};
      sw::initialise(model, on, 3);
      using x_type = sw::dtensor_of<double, sw::shape<6, 4>, line<2>, sw::on<dp<2>, sw::shard<0>>>;
      using y_type = sw::dtensor_of<double, sw::shape<6, 2>, line<2>, sw::on<dp<2>, sw::shard<0>>>;
      const auto [loss, gradients] = sw::value_and_grad(task<2>{})(model, x_type::distribute(on, numbers(24, 0.3)),
                                                                   y_type::distribute(on, numbers(12, 1.1)));
      sw::eager_optimizer<sw::clip_norm<sw::adam<>>, decltype(model)> optimizer;
      optimizer.step(model, gradients, env);
    });
  };
  sw::step_env env = complete();
  env.max_norm = 1;
  CHECK(call(env) == "nothing was thrown");
  env.step = 0;
  CHECK(begins(call(env), "shardwise: run: env.step is 0"));
  env = complete();
  CHECK(begins(call(env), "shardwise: run: env.max_norm is not a number"));
  env.max_norm = 1;
  env.lr = sw::step_env{}.lr;
  CHECK(begins(call(env), "shardwise: run: env.lr is not a number"));
}

struct second_of_two {
  constexpr auto operator()(const auto&, const auto& y) const { return y * 2.; }
};
using six = sw::input_tensor<double, sw::shape<6>, sw::on<dp<2>, sw::shard<0>>>;
using step_of_one = sw::function_step<second_of_two, line<2>, sw::inputs<six, six>>;

TEST_CASE("an input that nobody has set is named, if the program reads it") {
  using step = step_of<sw::adam<>, 3>;
  CHECK(told_alone<2>([](auto& rank) {
          sw::executor<step_of_one, sw::fake_rank<line<2>>> ex(rank);
          ex.set_input(1, numbers(6, 0));
          ex.run({});
        }) == "nothing was thrown");
  const auto call = [](int given, bool in_place) {
    return [=](auto& rank) {
      sw::executor<step, std::remove_reference_t<decltype(rank)>> ex(rank);
      ex.initialise(3);
      if (given > 0) ex.set_input(0, numbers(24, 0.3));
      if (in_place)
        for (double& v : ex.template input<double>(1)) v = 1;
      ex.run(complete());
    };
  };
  const std::string none =
      "shardwise: run: input 0, (6, 4) [shard<0>], has no value; give it one with set_input(0, ...), or fill "
      "the block input<...>(0), before the run";
  CHECK(told<3>(call(0, false)) == none);
  CHECK(told_alone<3>(call(0, false)) == none);
  CHECK(begins(told<3>(call(1, false)), "shardwise: run: input 1, (6, 2) [shard<0>], has no value"));
  CHECK(told<3>(call(0, true)) == none);
  CHECK(told<3>(call(1, true)) == "nothing was thrown");
  CHECK(told_alone<3>(call(1, true)) == "nothing was thrown");
}

TEST_CASE("a parameter that nobody has set is named wherever it would be read") {
  using step = step_of<sw::adam<>>;
  using ex_type = sw::executor<step>;
  const std::string fix = "' has no value; give all of them one with initialise(seed), copy_parameters or set_parameter";
  CHECK(told<2>([](auto& rank) {
          ex_type ex(rank);
          feed(ex);
          for (int i = 0; i < ex.parameter_count(); ++i)
            for (double& v : ex.parameter(i)) v = 0.1;
          ex.run(complete());
        }) == "nothing was thrown");  // parameter(i) may be written through
  CHECK(told<2>([](auto& rank) {
          ex_type ex(rank);
          feed(ex);
          ex.set_parameter(0, numbers(12, 0.1));
          ex.set_parameter(1, numbers(3, 0.1));
          ex.run(complete());
        }) == "shardwise: run: parameter 'second.weight" + fix);
  CHECK(told<2>([](auto& rank) {
          ex_type ex(rank);
          std::vector<double> whole(12);
          ex.gather_parameter(0, whole);
        }) == "shardwise: gather_parameter: parameter 'first.weight" + fix);
  CHECK(told<2>([](auto& rank) {
          const ex_type ex(rank);
          (void)ex.parameter(1);
        }) == "shardwise: parameter: parameter 'first.bias" + fix);
  CHECK(told<2>([](auto& rank) {
          ex_type from(rank), to(rank);
          to.copy_parameters(from);
        }) == "shardwise: copy_parameters: parameter 'first.weight" + fix);
  CHECK(told<2>([](auto& rank) {
          ex_type from(rank), to(rank);
          from.initialise(3);
          to.copy_parameters(from);
          feed(to);
          to.run(complete());
        }) == "nothing was thrown");
}

TEST_CASE("an output is not read before there is one") {
  const std::string why = "shardwise: output: the program has not run yet, so it has no outputs; call run first";
  CHECK(told<2>([](auto& rank) {
          sw::executor<step_of<sw::adam<>>> ex(rank);
          (void)ex.loss();
        }) == why);
  CHECK(told<2>([](auto& rank) {
          sw::executor<step_of<sw::adam<>>> ex(rank);
          (void)ex.output(0);
        }) == why);
}

// In an arena of garbage, with parameters set one by one, the optimizer's first step is the one after initialise.
TEST_CASE("an optimizer's states are zeros whichever way the parameters were set") {
  using step = step_of<sw::clip_norm<sw::adam<>>>;
  sw::launch<line<2>>([](auto& rank) {
    struct alignas(64) memory {
      std::byte bytes[static_cast<std::size_t>(step::peak_bytes)];
    };
    const auto garbage = std::make_unique<memory>();
    std::memset(garbage->bytes, 0x3F, sizeof garbage->bytes);
    sw::executor<step> want(rank);
    sw::executor<step> got(rank, std::span<std::byte>(garbage->bytes));
    want.initialise(7);
    for (int i = 0; i < want.parameter_count(); ++i) {
      const auto from = want.parameter(i);
      const auto to = got.parameter(i);
      for (std::size_t k = 0; k < to.size(); ++k) to[k] = from[k];
    }
    sw::step_env env = complete();
    env.max_norm = 1;
    for (int s = 1; s <= 3; ++s) {
      env.step = s;
      feed(want);
      feed(got);
      want.run(env);
      got.run(env);
      CHECK(want.loss() == got.loss());
    }
  });
}

TEST_CASE("the programs of an iterated step share what has been set") {
  using step = step_of<sw::adam<>>;
  using steps = sw::iterated<step>;
  const auto call = [](bool parameters, bool inputs) {
    return told<2>([=](auto& rank) {
      sw::iterated_executor<steps> ex(rank);
      if (parameters) ex.main().initialise(3);
      if (inputs) feed(ex.main());
      ex.run(complete());
      ex.run(complete());
    });
  };
  CHECK(call(true, true) == "nothing was thrown");
  CHECK(begins(call(true, false), "shardwise: run: input 0, (6, 4) [shard<0>], has no value"));
  CHECK(begins(call(false, true), "shardwise: run: parameter 'first.weight' has no value"));
}

struct doubled {
  constexpr auto operator()(const auto& x) const { return x * 2.; }
};

TEST_CASE("after another run-time size an input must be set again") {
  using step = sw::function_step<doubled, line<2>,
                                 sw::inputs<sw::input_tensor<double, sw::shape<sw::dyn<6>>, sw::on<dp<2>, sw::shard<0>>>>>;
  CHECK(told<2>([](auto& rank) {
          sw::executor<step> ex(rank);
          ex.set_input(0, numbers(6, 0));
          ex.resize(6);
          ex.run({});
          ex.resize(4);
          ex.set_input(0, numbers(4, 0));
          ex.run({});
          ex.resize(4);
          ex.run({});
        }) == "nothing was thrown");
  CHECK(begins(told<2>([](auto& rank) {
                 sw::executor<step> ex(rank);
                 ex.set_input(0, numbers(6, 0));
                 ex.resize(4);
                 ex.run({});
               }),
               "shardwise: run: input 0, (6) [shard<0>], has no value of this run-time size"));
}

}  // namespace
