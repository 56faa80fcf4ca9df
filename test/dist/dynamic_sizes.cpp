// SPDX-License-Identifier: Apache-2.0
// One compiled program serves every batch size up to its bound, on every mesh: the same losses as a program of that size.
#include <doctest/doctest.h>

#include <cmath>
#include <stdexcept>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "run_time.hpp"

namespace {

namespace sw = shardwise;

using run_time::all_bits_of, run_time::as_it_is, run_time::two_sizes;

struct one : sw::axis<1> {};
struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct three : sw::axis<3> {};
struct four : sw::axis<4> {};

template <class Bound = sw::unbound>
struct classifier : sw::module<classifier<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<6, 8>, first), (sw::layer_norm_module<8>, norm), (sw::linear<8, 5>, second));
  // (batch, 3, 6) -> (batch * 3, 5), so that a dyn dim goes through a reshape
  constexpr auto forward(const auto& x) const {
    using X = std::remove_cvref_t<decltype(x)>;
    constexpr std::int64_t rows = X::sp.extent[0] * 3;
    return second(sw::relu(sw::reshape<sw::is_dyn(X::sp, 0) ? -rows : rows, 8>(norm(first(x)))));
  }
};

template <std::int64_t Batch, class Axis>
struct task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<Batch, 3, 6>, sw::on<Axis, sw::shard<0>>>,
                            sw::input_tensor<std::int32_t, sw::shape<Batch, 3>, sw::on<Axis, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    return sw::cross_entropy(model(x), sw::reshape<Batch * 3>(y));
  }
};

template <class Mesh, class Axis, class Plan, std::int64_t Batch>
using step_of = sw::train_step<classifier, task<Batch, Axis>, Plan, Mesh, sw::adam<>, sw::pipeline<>, double>;

// Losses of five steps with the batches of sizes[s % n]; Batch < 0 is dyn with that bound.
template <class Step, class Mesh>
std::vector<double> losses(const std::vector<int>& sizes, bool dynamic) {
  std::vector<double> out;
  sw::launch<Mesh>([&](auto& rank) {
    sw::executor<Step, sw::thread_rank<Mesh>> run(rank, sw::executor_checks::poison);
    run.initialise(3);
    sw::step_env env;
    env.lr = 0.01;
    for (int s = 1; s <= 5; ++s) {
      const int n = sizes[static_cast<std::size_t>(s) % sizes.size()];
      if (dynamic) run.resize(n);
      std::vector<double> x(static_cast<std::size_t>(n) * 18);
      std::vector<std::int32_t> y(static_cast<std::size_t>(n) * 3);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.9 * static_cast<double>(i) + s);
      for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int32_t>((i * 7 + static_cast<std::size_t>(s)) % 5);
      run.set_input(0, x);
      run.set_input(1, y);
      env.step = s;
      run.run(env);
      if (rank.index() == 0) out.push_back(run.loss());
    }
  });
  return out;
}

void equal(const std::vector<double>& a, const std::vector<double>& b, double tolerance) {
  REQUIRE(a.size() == b.size());
  for (std::size_t i = 0; i < a.size(); ++i) CHECK(a[i] == doctest::Approx(b[i]).epsilon(tolerance));
}

using single = sw::mesh<one>;
using two_by_two = sw::mesh<dp, tp>;
using uneven = sw::mesh<three>;
using plan_1 = sw::plan<sw::data_parallel<one>>;
using plan_4 = sw::plan<sw::data_parallel<dp>>;
using plan_3 = sw::plan<sw::data_parallel<three>>;

// Everything that works along a dim of run-time extent N, and the gradients of all of it.
struct along_columns {
  constexpr auto operator()(const auto& x, const auto& w, const auto& b, const auto& table, const auto& rows,
                            const auto& classes) const {
    const auto normed = sw::layer_norm(x, w, b) + sw::rms_norm(x, w) + sw::softmax<1>(x);
    const auto looked_up = sw::embedding(table, rows) * normed;
    const auto numbers =
        sw::logsumexp<1>(looked_up) + sw::cross_entropy_rows(x, classes) + sw::amax<1>(x) * sw::mean<1>(looked_up);
    const auto product = sw::matmul(normed, sw::transpose<0, 1>(looked_up));
    return sw::sum(numbers) + sw::sum(sw::square(product)) + sw::sum(sw::topk<1, 1>(looked_up).values);
  }
};
template <std::int64_t N, class Axis>
using columns_step = sw::gradient_step<along_columns, sw::mesh<Axis>,
                                       sw::inputs<sw::input_tensor<double, sw::shape<4, N>, sw::on<Axis, sw::replicate>>,
                                                  sw::input_tensor<double, sw::shape<N>, sw::on<Axis, sw::replicate>>,
                                                  sw::input_tensor<double, sw::shape<N>, sw::on<Axis, sw::replicate>>,
                                                  sw::input_tensor<double, sw::shape<3, N>, sw::on<Axis, sw::replicate>>,
                                                  sw::input_tensor<std::int32_t, sw::shape<4>, sw::on<Axis, sw::replicate>>,
                                                  sw::input_tensor<std::int32_t, sw::shape<4>, sw::on<Axis, sw::replicate>>>,
                                       sw::wrt<0, 1, 2, 3>>;

// The loss and all gradients.
template <class Step>
std::vector<double> values_and_gradients(const std::vector<int>& sizes, bool dynamic) {
  std::vector<double> out;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_cvref_t<decltype(rank)>> run(rank, sw::executor_checks::poison);
    for (const int n : sizes) {
      if (dynamic) run.resize(n);
      for (int k = 0; k < 4; ++k) {
        std::vector<double> x(static_cast<std::size_t>(n * (k == 0 ? 4 : k == 3 ? 3 : 1)));
        for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.9 * static_cast<double>(i) + k);
        run.set_input(k, x);
      }
      run.set_input(4, std::vector<std::int32_t>{2, 0, 2, 1});
      run.set_input(5, std::vector<std::int32_t>{0, 1, 1, 0});
      run.run(sw::step_env{});
      for (int k = 0; k < 5; ++k) {
        const auto block = run.template output<double>(k);
        out.insert(out.end(), block.data.begin(), block.data.end());
      }
    }
  });
  return out;
}

// A mean loss, its gradient and the features before it: of no rows the mean is not a number, and no row has a gradient.
struct on_batch {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::softmax<1>(sw::gelu(x * 2.));
    return std::tuple{sw::mean(sw::square(y - 0.25)), y};
  }
};
template <std::int64_t Batch, class Axis>
using batch_step =
    sw::gradient_step<on_batch, sw::mesh<Axis>,
                      sw::inputs<sw::input_tensor<double, sw::shape<Batch, 4>, sw::on<Axis, sw::shard<0>>>>, sw::wrt<0>>;
template <class Axis, int... N>
void batches_equal(std::integer_sequence<int, N...>) {
  const auto resized = [](auto& run, const two_sizes& n) { run.resize(n.batch); };
  const auto same = [&]<int B>(std::integral_constant<int, B>) {
    CAPTURE(B);
    CHECK(all_bits_of<batch_step<sw::dyn<17>, Axis>, 3>({{B, 1}}, 4, resized) ==
          all_bits_of<batch_step<B, Axis>, 3>({{B, 1}}, 4, as_it_is));
  };
  (same(std::integral_constant<int, N>{}), ...);
}

}  // namespace

TEST_CASE("dyn: norms, softmax, losses, look-ups, largest elements and products along it, and their gradients") {
  const auto dynamic = values_and_gradients<columns_step<sw::dyn<7>, one>>({7, 4}, true);
  auto fixed = values_and_gradients<columns_step<7, one>>({7}, false);
  const auto smaller = values_and_gradients<columns_step<4, one>>({4}, false);
  fixed.insert(fixed.end(), smaller.begin(), smaller.end());
  CHECK(fixed.size() == 2 + 9 * (7 + 4));
  equal(dynamic, fixed, 1e-13);
}

TEST_CASE("dyn: a program for up to 7 equals the program of each size") {
  for (int n : {2, 4, 7}) {
    const auto dynamic = losses<step_of<single, one, plan_1, sw::dyn<7>>, single>({n}, true);
    const auto fixed = n == 2   ? losses<step_of<single, one, plan_1, 2>, single>({n}, false)
                       : n == 4 ? losses<step_of<single, one, plan_1, 4>, single>({n}, false)
                                : losses<step_of<single, one, plan_1, 7>, single>({n}, false);
    equal(dynamic, fixed, 1e-14);
  }
}

TEST_CASE("dyn: changing sizes from step to step, uneven and empty shards, equal the single rank") {
  const std::vector<int> sizes = {5, 2, 7, 1};
  const auto reference = losses<step_of<single, one, plan_1, sw::dyn<7>>, single>(sizes, true);
  equal(losses<step_of<two_by_two, dp, plan_4, sw::dyn<7>>, two_by_two>(sizes, true), reference, 1e-12);
  equal(losses<step_of<uneven, three, plan_3, sw::dyn<7>>, uneven>(sizes, true), reference, 1e-12);
}

TEST_CASE("dyn: a size outside the bound is refused with the bound") {
  using step = step_of<single, one, plan_1, sw::dyn<7>>;
  sw::launch<single>([](auto& rank) {
    sw::executor<step, sw::thread_rank<single>> run(rank);
    CHECK_THROWS_WITH_AS(run.resize(8), doctest::Contains("declared bound 7"), std::invalid_argument);
    CHECK_THROWS_WITH_AS(run.resize(-1), doctest::Contains("from 0 to the declared bound 7"), std::invalid_argument);
    CHECK_THROWS_WITH_AS(run.resize(3, 3), doctest::Contains("2 sizes are given; the program has 1"), std::invalid_argument);
  });
  sw::launch<single>([](auto& rank) {  // a largest element of none
    sw::executor<columns_step<sw::dyn<7>, one>, sw::thread_rank<single>> run(rank);
    CHECK_THROWS_WITH_AS(run.resize(0),
                         doctest::Contains("from 1, because the program takes a largest or smallest element along it, to"),
                         std::invalid_argument);
  });
}

// Every batch from 0 to 17 through one program, against the programs of these sizes.
TEST_CASE("dyn: batches of 0 to 17 equal the programs of these sizes bit by bit") {
  SUBCASE("1 rank") { batches_equal<one>(std::make_integer_sequence<int, 18>{}); }
  SUBCASE("2 ranks") { batches_equal<dp>(std::make_integer_sequence<int, 18>{}); }
  SUBCASE("3 ranks") { batches_equal<three>(std::make_integer_sequence<int, 18>{}); }
  SUBCASE("4 ranks") { batches_equal<four>(std::make_integer_sequence<int, 18>{}); }
}
