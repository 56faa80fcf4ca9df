// SPDX-License-Identifier: Apache-2.0
// Tasks that return metrics beside their loss: outputs of the step, whole over the mesh, read by name, without a gradient.
#include <shardwise/module/hana.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/runtime/executor/iterated.hpp>
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <thrown.hpp>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using test::thrown;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
template <int D, int N>
using mesh = sw::mesh<dp<D>, tp<N>>;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<4, 6>, first), (sw::linear<6, 3>, second));
  constexpr auto forward(const auto& x) const { return second(sw::relu(first(x))); }
};

template <int D>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<7, 4>, sw::on<dp<D>, sw::shard<0>>>,
                            sw::input_tensor<std::int32_t, sw::shape<7>, sw::on<dp<D>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const { return sw::cross_entropy(model(x), y); }
};
// The loss, a sum that is partial over dp, a maximum, the parameter's own first row (before the step), each row's top logit.
template <int D>
struct with_metrics {
  using inputs = typename task<D>::inputs;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto logits = model(x);
    const auto loss = sw::cross_entropy(logits, y);
    return sw::outputs(sw::named<"loss">(loss), sw::named<"squares">(sw::sum(logits * logits)),
                       sw::named<"top">(sw::amax<0>(sw::amax<1>(logits))), sw::named<"bias">(model.second.bias),
                       sw::named<"rows">(sw::amax<1>(logits)));
  }
};

template <int D, int N>
using plan = sw::plan<sw::data_parallel<dp<D>>, sw::at<"first", sw::colwise<tp<N>>>, sw::at<"second", sw::rowwise<tp<N>>>>;
template <template <int> class Task, int D, int N, class Pipeline = sw::pipeline<>>
using step = sw::train_step<net, Task<D>, plan<D, N>, mesh<D, N>, sw::adam<>, Pipeline, double>;

std::vector<double> batch(int s) {
  std::vector<double> x(28);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.37 * static_cast<double>(i) + s);
  return x;
}
const std::vector<std::int32_t> classes{0, 2, 1, 1, 0, 2, 2};

struct history {
  std::vector<double> loss, squares, top, bias, rows;
};

void check(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(1e-12));
}

sw::step_env numbers(int s) {
  sw::step_env env;
  env.lr = 0.05;
  env.step = s;
  return env;
}

// A block into a whole tensor of all ranks.
void put(std::vector<double>& whole, const sw::local_block<double>& b, std::size_t at) {
  for (std::int64_t i = 0; i < b.layout.numel(); ++i)
    whole[at + static_cast<std::size_t>(b.layout.origin[0] + i)] = b.data[static_cast<std::size_t>(i * b.layout.str[0])];
}

template <class Step>
history train(int steps) {
  history h;
  h.rows.resize(static_cast<std::size_t>(7 * steps));
  h.bias.resize(static_cast<std::size_t>(3 * steps));
  using mesh_type = typename Step::mesh_type;
  sw::launch<mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank, sw::executor_checks::poison);
    ex.initialise(5);
    for (int s = 1; s <= steps; ++s) {
      ex.set_input(0, batch(s));
      ex.set_input(1, classes);
      const std::vector<double> bias(ex.parameter(3).begin(), ex.parameter(3).end());
      ex.run(numbers(s));
      const auto shown = ex.output("bias");  // what it was before the step
      CHECK(std::vector<double>(shown.data.begin(), shown.data.end()) == bias);
      CHECK(std::vector<double>(ex.parameter(3).begin(), ex.parameter(3).end()) != bias);
      CHECK(ex.template output<"loss">().item() == ex.loss());
      CHECK(ex.output("squares").item() == ex.template output<"squares">().item());
      if (rank.coordinate(1) == 0) put(h.rows, ex.template output<"rows">(), static_cast<std::size_t>(7 * (s - 1)));
      if (rank.index() != 0) continue;
      put(h.bias, ex.output("bias"), static_cast<std::size_t>(3 * (s - 1)));
      h.loss.push_back(ex.loss());
      h.squares.push_back(ex.template output<"squares">().item());
      h.top.push_back(ex.output("top").item());
    }
  });
  return h;
}

template <class Step>
std::vector<double> losses(int steps) {
  std::vector<double> all;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step> ex(rank);
    ex.initialise(5);
    for (int s = 1; s <= steps; ++s) {
      ex.set_input(0, batch(s));
      ex.set_input(1, classes);
      ex.run(numbers(s));
      if (rank.index() == 0) all.push_back(ex.loss());
    }
  });
  return all;
}

void check(const history& got, const history& want) {
  check(got.loss, want.loss);
  check(got.squares, want.squares);
  check(got.top, want.top);
  check(got.bias, want.bias);
  check(got.rows, want.rows);
}

TEST_CASE("metrics are those of one rank on every mesh, and change nothing of the training") {
  const history one = train<step<with_metrics, 1, 1>>(4);
  CHECK(one.loss == losses<step<task, 1, 1>>(4));  // bit by bit
  for (int s = 0; s < 4; ++s) {
    double top = -1e9;
    for (int i = 0; i < 7; ++i) top = std::max(top, one.rows[static_cast<std::size_t>(7 * s + i)]);
    CHECK(top == one.top[static_cast<std::size_t>(s)]);
  }
  check(train<step<with_metrics, 2, 1>>(4), one);
  check(train<step<with_metrics, 3, 1>>(4), one);
  check(train<step<with_metrics, 2, 2>>(4), one);
  check(train<step<with_metrics, 1, 3>>(4), one);
  check(train<step<with_metrics, 2, 2, sw::pipeline<sw::fuse_kernels, sw::schedule_comm_wait>>>(4), one);
}

TEST_CASE("metrics of a forward program") {
  using forward = sw::forward_step<net, with_metrics<2>, plan<2, 2>, mesh<2, 2>, sw::pipeline<>, double>;
  using single = sw::forward_step<net, with_metrics<1>, plan<1, 1>, mesh<1, 1>, sw::pipeline<>, double>;
  const auto values = []<class Step>(std::vector<double>& out) {
    sw::launch<typename Step::mesh_type>([&](auto& rank) {
      sw::executor<Step> ex(rank);
      ex.initialise(5);
      ex.set_input(0, batch(1));
      ex.set_input(1, classes);
      ex.run({});
      if (rank.index() == 0) out = {ex.loss(), ex.template output<"squares">().item(), ex.output("top").item()};
    });
  };
  std::vector<double> got, want;
  values.template operator()<forward>(got);
  values.template operator()<single>(want);
  check(got, want);
}

TEST_CASE("metrics of an iterated step are those of its last call") {
  using plain = step<with_metrics, 2, 2>;
  using steps = sw::iterated<plain>;
  const history want = train<plain>(4);
  sw::launch<mesh<2, 2>>([&](auto& rank) {
    sw::iterated_executor<steps> ex(rank);
    ex.main().initialise(5);
    for (int s = 1; s <= 4; ++s) {
      ex.main().set_input(0, batch(s));
      ex.main().set_input(1, classes);
      ex.run(numbers(s), s == 4);
      const auto at = static_cast<std::size_t>(s - 1);
      CHECK(ex.loss() == want.loss[at]);
      CHECK(ex.template output<"squares">().item() == want.squares[at]);
      CHECK(ex.output("top").item() == want.top[at]);
    }
  });
}

TEST_CASE("value_and_grad of a task with metrics gives them too, and the same gradients") {
  sw::launch<mesh<2, 2>>([](auto& rank) {
    sw::eager on(rank);
    sw::bind_eager<net, plan<2, 2>, mesh<2, 2>, double> model{};
    sw::initialise(model, on, 5);
    const auto x =
        sw::dtensor_of<double, sw::shape<7, 4>, mesh<2, 2>, sw::on<dp<2>, sw::shard<0>>>::distribute(on, batch(1));
    const auto y =
        sw::dtensor_of<std::int32_t, sw::shape<7>, mesh<2, 2>, sw::on<dp<2>, sw::shard<0>>>::distribute(on, classes);
    const auto [loss, gradients, metrics] = sw::value_and_grad(with_metrics<2>{})(model, x, y);
    const auto [plain, same] = sw::value_and_grad(task<2>{})(model, x, y);
    CHECK(loss.item() == plain.item());
    CHECK(metrics.template get<"loss">().item() == plain.item());
    const auto a = gradients.first.weight.to_local(), b = same.first.weight.to_local();
    CHECK(std::vector<double>(a.data.begin(), a.data.end()) == std::vector<double>(b.data.begin(), b.data.end()));
    const auto at_once = with_metrics<2>{}(model, x, y);
    CHECK(at_once.template get<"squares">().item() == metrics.template get<"squares">().item());
    sw::executor<step<with_metrics, 2, 2>> ex(rank);
    ex.initialise(5);
    ex.set_input(0, batch(1));
    ex.set_input(1, classes);
    ex.run(numbers(1));
    CHECK(ex.template output<"squares">().item() == metrics.template get<"squares">().item());
    CHECK(ex.template output<"top">().item() == metrics.template get<"top">().item());
  });
}

// Outputs that come to lie in a parameter without being a view of it: written from it, redistributed without a move, the loss itself.
template <class Bound = sw::unbound>
struct scaled : sw::module<scaled<Bound>, Bound> {
  using weight_type = sw::parameter<sw::shape<4>, sw::init::normal<1, 1>, sw::child<Bound, 0>>;
  using factor_type = sw::parameter<sw::shape<>, sw::init::normal<1, 1>, sw::child<Bound, 1>>;
  BOOST_HANA_DEFINE_STRUCT(scaled, (weight_type, weight), (factor_type, factor));
  constexpr auto forward(const auto& x) const { return sw::sum(weight * x) * factor; }
};
template <int D>
struct shows_parameters {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<2, 4>, sw::on<dp<D>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto written = sw::tanh(model.weight);
    sw::copy_(written, model.weight);
    const auto moved = sw::redistribute<dp<D>, sw::replicate>(written);
    const auto twice = sw::redistribute<dp<D>, sw::replicate>(sw::redistribute<dp<D>, sw::replicate>(model.weight));
    const auto part = sw::tanh(model.weight);
    sw::copy_(sw::slice<0, 0, 4>(part), model.weight);
    return sw::outputs(sw::named<"loss">(model(x)), sw::named<"written">(written), sw::named<"moved">(moved),
                       sw::named<"twice">(twice), sw::named<"view">(sw::slice<0, 1, 3>(moved)),
                       sw::named<"part">(sw::redistribute<dp<D>, sw::replicate>(part)));
  }
};
template <int D>
struct loss_is_a_parameter {
  using inputs = typename shows_parameters<D>::inputs;
  constexpr auto operator()(const auto& model, const auto&) const { return model.factor; }
};
template <template <int> class Task, int D>
using scaled_step =
    sw::train_step<scaled, Task<D>, sw::plan<sw::data_parallel<dp<D>>>, mesh<D, 1>, sw::sgd<>, sw::pipeline<>, double>;

template <int D>
void check_values_before_the_step() {
  using plain = scaled_step<shows_parameters, D>;
  using moved = sw::iterated<plain, sw::move_descendants<"redistribute", "sgd", "sgd_1">>;
  const std::vector<double> x{1, -2, 3, -4, 5, 6, -7, 8};
  // the parameter that the forward of this call saw
  const auto check_call = [](auto& ex, const std::vector<double>& seen) {
    for (const std::string name : {"written", "moved", "twice", "part"}) {
      CAPTURE(name);
      const auto shown = ex.output(name);
      CHECK(std::vector<double>(shown.data.begin(), shown.data.end()) == seen);
    }
    const auto view = ex.output("view");
    CHECK(view(0) == seen[1]);
    CHECK(view(1) == seen[2]);
  };
  sw::launch<mesh<D, 1>>([&](auto& rank) {
    sw::executor<plain> ex(rank, sw::executor_checks::poison);
    ex.initialise(5);
    sw::iterated_executor<moved> late(rank);  // whose step runs in the next call
    late.main().initialise(5);
    for (int s = 1; s <= 3; ++s) {
      const std::vector<double> before(ex.parameter(0).begin(), ex.parameter(0).end());
      ex.set_input(0, x);
      ex.run(numbers(s));
      CHECK(std::vector<double>(ex.parameter(0).begin(), ex.parameter(0).end()) != before);
      check_call(ex, before);
      late.main().set_input(0, x);
      late.run(numbers(s), s == 3);
      check_call(late, before);
    }
    sw::executor<scaled_step<loss_is_a_parameter, D>> constant(rank);
    constant.initialise(5);
    const double factor = constant.parameter(1)[0];
    constant.set_input(0, x);
    constant.run(numbers(1));
    CHECK(constant.loss() == factor);
    CHECK(constant.parameter(1)[0] != factor);

    sw::eager on(rank);  // the same at once: the step comes after
    sw::bind_eager<scaled, sw::plan<sw::data_parallel<dp<D>>>, mesh<D, 1>, double> model{};
    sw::initialise(model, on, 5);
    const auto block = model.weight.to_local();
    const std::vector<double> before(block.data.begin(), block.data.end());
    const auto given = sw::dtensor_of<double, sw::shape<2, 4>, mesh<D, 1>, sw::on<dp<D>, sw::shard<0>>>::distribute(on, x);
    const auto [loss, gradients, metrics] = sw::value_and_grad(shows_parameters<D>{})(model, given);
    sw::eager_optimizer<sw::sgd<>, decltype(model)> optimizer;
    optimizer.step(model, gradients, numbers(1));
    const auto after = model.weight.to_local();
    CHECK(std::vector<double>(after.data.begin(), after.data.end()) != before);
    const auto same = [&](const auto& metric) {
      const auto shown = metric.to_local();
      CHECK(std::vector<double>(shown.data.begin(), shown.data.end()) == before);
    };
    same(metrics.template get<"written">());
    same(metrics.template get<"moved">());
    same(metrics.template get<"twice">());
    same(metrics.template get<"part">());
  });
}

TEST_CASE("an output is what it was before the step, however it came to lie in a parameter") {
  check_values_before_the_step<1>();
  check_values_before_the_step<2>();
}

// Twelve outputs.
template <int D>
struct with_many {
  using inputs = typename task<D>::inputs;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto total = sw::sum(model(x));
    const auto times = [&](double k) { return total * k; };
    return sw::outputs(sw::named<"loss">(sw::cross_entropy(model(x), y)), sw::named<"by1">(times(1)),
                       sw::named<"by2">(times(2)), sw::named<"by3">(times(3)), sw::named<"by4">(times(4)),
                       sw::named<"by5">(times(5)), sw::named<"by6">(times(6)), sw::named<"by7">(times(7)),
                       sw::named<"by8">(times(8)), sw::named<"by9">(times(9)), sw::named<"by10">(times(10)),
                       sw::named<"by11">(times(11)));
  }
};

template <int D, int N>
void check_many() {
  CAPTURE(D);
  CAPTURE(N);
  using every = sw::pipeline<sw::cancel_redistributions, sw::merge_common, sw::fuse_kernels>;
  sw::launch<mesh<D, N>>([](auto& rank) {
    sw::executor<step<with_many, D, N, every>> ex(rank);
    ex.initialise(3);
    ex.set_input(0, batch(1));
    ex.set_input(1, std::vector<std::int32_t>{0, 1, 2, 0, 1, 2, 0});
    sw::step_env env;
    env.lr = 0.01;
    env.step = 1;
    ex.run(env);
    const double one = ex.template output<"by1">().item();
    CHECK(std::isfinite(one));
    CHECK(one != 0);
    CHECK(ex.template output<"by8">().item() == doctest::Approx(8 * one));
    CHECK(ex.template output<"by11">().item() == doctest::Approx(11 * one));
  });
}

TEST_CASE("a step has as many metrics as its task names") {
  check_many<1, 1>();
  check_many<2, 2>();
  check_many<3, 1>();
}

struct halves {
  constexpr auto operator()(const auto& x) const {
    return sw::outputs(sw::named<"all">(sw::sum(x)), sw::named<"twice">(x * 2.));
  }
};

TEST_CASE("a function's outputs have names, too") {
  using program = sw::function_step<halves, mesh<1, 1>, sw::inputs<sw::input_tensor<double, sw::shape<3>>>>;
  sw::launch<mesh<1, 1>>([](auto& rank) {
    sw::executor<program> ex(rank);
    ex.set_input(0, std::vector<double>{1, 2, 3});
    ex.run({});
    CHECK(ex.template output<"all">().item() == 6);
    CHECK(ex.output("twice")(2) == 6);
    CHECK(ex.output(0).item() == 6);
  });
}

TEST_CASE("a name that the task does not give is told those that it gives") {
  sw::launch_fake<mesh<2, 2>>(3, [](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<step<with_metrics, 2, 2>, rank_type> ex(rank);
    ex.initialise(5);
    ex.set_input(0, batch(1));
    ex.set_input(1, classes);
    ex.run(numbers(1));
    CHECK(thrown([&] { ex.output("acuracy"); }) ==
          "shardwise: output: the program has no output named 'acuracy'; it has 'loss', 'squares', 'top', 'bias', 'rows'");
    CHECK(
        thrown([&] { ex.output("rows").item(); }) ==
        "shardwise: item: this rank's block has 3 elements; read them one by one, or make the output a scalar with sum or mean");
    sw::executor<step<task, 2, 2>, rank_type> plain(rank);
    CHECK(
        thrown([&] { plain.output("loss"); }) ==
        "shardwise: output: the program has no output named 'loss'; its task names none: return outputs(named<...>(loss), ...)");
  });
}

}  // namespace
