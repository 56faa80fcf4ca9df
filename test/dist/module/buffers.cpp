// SPDX-License-Identifier: Apache-2.0
// Buffers of modules on 1 to 4 ranks: running statistics that a step writes are those of a plain loop and of one rank, whatever
// splits the batch and the features; an evaluation reads them; eager training leaves the compiled step's bits.
#include <running_norm.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <string>

namespace {

using namespace test::running;
namespace sw = shardwise;

template <int D, int N, template <int, int> class Plan, int Rows = 7>
history<double> run(int steps) {
  return train_and_judge<training<D, N, Plan, sw::pipeline<>, Rows>, evaluation<D, N, Plan, sw::pipeline<>, Rows>, Rows>(
      steps);
}

// What running_norm leaves of the batches that it is called with alone, in plain loops.
struct statistics {
  std::vector<double> mean = std::vector<double>(5, 0), var = std::vector<double>(5, 1);
  void meet(const std::vector<double>& x, int rows) {
    for (std::size_t f = 0; f < 5; ++f) {
      double m = 0, v = 0;
      for (int r = 0; r < rows; ++r) m += x[static_cast<std::size_t>(r) * 5 + f] / rows;
      for (int r = 0; r < rows; ++r) v += std::pow(x[static_cast<std::size_t>(r) * 5 + f] - m, 2) / (rows - 1);
      mean[f] += momentum * (m - mean[f]);
      var[f] += momentum * (v - var[f]);
    }
  }
};

template <class Axis>
struct alone {
  template <class Bound = sw::unbound>
  struct net : sw::module<net<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (running_norm<Axis, 5>, norm));
    constexpr auto forward(const auto& x) const { return norm(x); }
  };
  template <class B>
  using net_of = net<B>;
};
template <int D, int Rows>
struct scored {
  using inputs = typename predict<double, D, Rows>::inputs;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto y = model(x);
    return sw::outputs(sw::named<"loss">(sw::mean(y * y)), sw::named<"y">(sw::redistribute<dp<D>, sw::replicate>(y)));
  }
};

template <int D, int Rows>
void check_plain() {
  using train = sw::train_step<alone<dp<D>>::template net_of, scored<D, Rows>, whole_plan<D, 1>, mesh<D, 1>, sw::sgd<>,
                               sw::pipeline<>, double>;
  using judge =
      sw::forward_step<alone<dp<D>>::template net_of, scored<D, Rows>, whole_plan<D, 1>, mesh<D, 1>, sw::pipeline<>, double>;
  sw::launch<mesh<D, 1>>([](auto& rank) {
    sw::executor<train> e(rank, sw::executor_checks::poison);
    sw::executor<judge> v(rank, sw::executor_checks::poison);
    e.initialise(1);
    statistics want;
    for (int s = 1; s <= 4; ++s) {
      const auto x = numbers<double>(Rows * 5, s);
      e.set_input(0, x);
      auto env = step_numbers(s);
      env.lr = 0;
      e.run(env);
      want.meet(x, Rows);
      for (std::size_t f = 0; f < 5; ++f) {
        CHECK(e.buffer(0)[f] == doctest::Approx(want.mean[f]).epsilon(1e-13));
        CHECK(e.buffer(1)[f] == doctest::Approx(want.var[f]).epsilon(1e-13));
      }
    }
    v.copy_parameters(e);
    const auto x = numbers<double>(Rows * 5, 7);
    v.set_input(0, x);
    for (int again = 0; again < 2; ++again) v.run({});  // an evaluation writes nothing
    const auto y = v.template output<"y">();
    for (std::size_t i = 0; i < x.size(); ++i)
      CHECK(y.data[i] == doctest::Approx((x[i] - want.mean[i % 5]) / std::sqrt(want.var[i % 5] + epsilon)).epsilon(1e-12));
    CHECK(std::memcmp(std::as_const(v).buffer(0).data(), std::as_const(e).buffer(0).data(), 5 * sizeof(double)) == 0);
  });
}

}  // namespace

TEST_CASE("buffers: running statistics are those of plain loops, also with uneven and empty shards") {
  check_plain<1, 7>();
  check_plain<2, 7>();
  check_plain<3, 7>();
  check_plain<4, 3>();
}

TEST_CASE("buffers: training and evaluation on a mesh equal one rank, with batch and features split") {
  const auto one = run<1, 1, whole_plan>(6);
  CHECK(one.before != one.after);
  CHECK(one.buffers.size() == 2);
  CHECK(difference(one, run<2, 1, whole_plan>(6)) < 1e-10);
  CHECK(difference(one, run<3, 1, whole_plan>(6)) < 1e-10);
  CHECK(difference(one, run<4, 1, whole_plan>(6)) < 1e-10);
  CHECK(difference(one, run<1, 3, split_plan>(6)) < 1e-10);
  CHECK(difference(one, run<2, 2, split_plan>(6)) < 1e-10);
}
TEST_CASE("buffers: empty shards of the batch, and of the features") {
  CHECK(difference(run<1, 1, whole_plan, 3>(4), run<4, 1, whole_plan, 3>(4)) < 1e-10);
  CHECK(difference(run<1, 1, whole_plan, 3>(4), run<1, 4, split_plan, 3>(4)) < 1e-10);
}
TEST_CASE("buffers: two runs are bitwise equal") {
  CHECK(difference(run<2, 2, split_plan>(3), run<2, 2, split_plan>(3)) == 0);
}

namespace {

template <class A, class B>
bool same_bits(const A& a, const B& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

// The compiled step and the eager one, then an evaluation of each.
template <int D, int N, template <int, int> class Plan, class Rank>
void check_eager(Rank& rank) {
  using model_of = models<dp<D>>;
  sw::executor<training<D, N, Plan>, Rank> program(rank);
  sw::executor<evaluation<D, N, Plan>, Rank> judge(rank);
  program.initialise(5);
  sw::eager on(rank);
  sw::bind_eager<model_of::template net_of, Plan<D, N>, mesh<D, N>, double, Rank> model{};
  sw::initialise(model, on, 5);
  sw::eager_optimizer<sw::sgd<true>, decltype(model)> optimizer;
  using input = sw::dtensor_of<double, sw::shape<7, 5>, mesh<D, N>, sw::on<dp<D>, sw::shard<0>>>;
  using target = sw::dtensor_of<double, sw::shape<7, 3>, mesh<D, N>, sw::on<dp<D>, sw::shard<0>>>;
  const auto compare = [&] {
    int met = 0;
    sw::for_each_parameter(model, [&](const std::string& path, auto& p) {
      CHECK_MESSAGE(same_bits(p.to_local().data, std::as_const(program).parameter(program.parameter_index(path))), path);
      ++met;
    });
    sw::for_each_buffer(model, [&](const std::string& path, auto& b) {
      CHECK_MESSAGE(same_bits(b.to_local().data, std::as_const(program).buffer(program.buffer_index(path))), path);
      ++met;
    });
    CHECK(met == program.parameter_count() + program.buffer_count());
  };
  compare();
  for (int s = 1; s <= 3; ++s) {
    program.set_input(0, numbers<double>(35, s));
    program.set_input(1, numbers<double>(21, s + 20));
    program.run(step_numbers(s));
    on.start_step(11, s);
    const auto [loss, gradients] = sw::value_and_grad(fit<double, D, 7>{})(
        model, input::distribute(on, numbers<double>(35, s)), target::distribute(on, numbers<double>(21, s + 20)));
    CHECK(loss.item() == program.loss());
    optimizer.step(model, gradients, step_numbers(s));
    compare();
  }
  // called, the model evaluates; in the other mode it shares its tensors
  const auto x = input::distribute(on, numbers<double>(35, 9));
  judge.copy_parameters(program);
  judge.set_input(0, numbers<double>(35, 9));
  judge.run({});
  CHECK(sw::sum(model(x)).item() == judge.loss());
  compare();
  const auto training_model = sw::with_mode<sw::train_mode>(model);
  on.start_step(11, 9);
  CHECK(sw::sum(training_model(x)).item() != judge.loss());
  CHECK(!same_bits(model.norm.running_mean.to_local().data, std::as_const(program).buffer(0)));
  CHECK(same_bits(model.norm.running_mean.to_local().data, training_model.norm.running_mean.to_local().data));
  // gradients of a model that is said to evaluate are those of its running statistics, which stay
  const std::vector<double> before(model.norm.running_var.to_local().begin(), model.norm.running_var.to_local().end());
  const auto frozen = sw::value_and_grad(fit<double, D, 7>{})(sw::with_mode<sw::eval_mode>(model), x,
                                                              target::distribute(on, numbers<double>(21, 3)));
  CHECK(same_bits(model.norm.running_var.to_local().data, std::span<const double>(before)));
  CHECK(frozen.gradients.up.weight.has_value());
  // there and back
  sw::store_parameters(model, program);
  sw::bind_eager<model_of::template net_of, Plan<D, N>, mesh<D, N>, double, Rank> again{};
  sw::load_parameters(again, on, program);
  CHECK(same_bits(model.norm.running_mean.to_local().data, again.norm.running_mean.to_local().data));
}

}  // namespace

TEST_CASE("buffers: eager training leaves the compiled step's parameters and buffers, bit for bit") {
  sw::launch<mesh<1, 1>>([](auto& rank) { check_eager<1, 1, whole_plan>(rank); });
  sw::launch<mesh<3, 1>>([](auto& rank) { check_eager<3, 1, whole_plan>(rank); });
  sw::launch<mesh<2, 2>>([](auto& rank) { check_eager<2, 2, split_plan>(rank); });
}
