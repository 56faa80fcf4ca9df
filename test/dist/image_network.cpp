// SPDX-License-Identifier: Apache-2.0
// A small network of images, convolution, batch norm, pooling and a linear layer, learns to tell classes apart, and does so alike on every
// mesh: rows of the batch that are not equally many, and fewer rows than ranks.
#include <shardwise/more_functions.hpp>

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <vector>

namespace {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;

inline constexpr int classes = 3, side = 8;

template <class Bound = sw::unbound>
struct network : sw::module<network<Bound>, Bound> {
  // Without bias: a norm's gradient of it is rounding alone, which Adam would scale up, on each mesh another one.
  SHARDWISE_MEMBERS(Bound, (sw::conv2d_module<1, 4, 3, sw::convolution_options{.padding = 1}, sw::unbound, false>, first),
                    (sw::batch_norm2d_module<4>, norm), (sw::linear<4 * side * side / 4, classes>, head));
  constexpr auto forward(const auto& x) const {
    return head(sw::flatten<1, 3>(sw::max_pool2d<sw::pool_options{.kernel = 2}>(sw::relu(norm(first(x))))));
  }
};
template <int D, int Rows>
struct task {
  using images = sw::input_tensor<double, sw::shape<Rows, 1, side, side>, sw::on<dp<D>, sw::shard<0>>>;
  using labels = sw::input_tensor<std::int32_t, sw::shape<Rows>, sw::on<dp<D>, sw::shard<0>>>;
  using inputs = sw::inputs<images, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    return sw::cross_entropy(model(x), label, sw::label_smoothing{0.05});
  }
};
template <int D>
using plan = sw::plan<sw::data_parallel<dp<D>>>;
template <int D, int Rows>
using step =
    sw::train_step<network, task<D, Rows>, plan<D>, mesh<D>, sw::clip_norm<sw::adamw<true>>, sw::pipeline<>, double>;
template <int D, int Rows>
using judge = sw::forward_step<network, task<D, Rows>, plan<D>, mesh<D>, sw::pipeline<>, double>;

// Losses of ten steps, then one of an evaluation by the running statistics.
template <int D, int Rows>
std::vector<double> history() {
  std::vector<double> x(static_cast<std::size_t>(Rows * side * side));
  std::vector<std::int32_t> label;
  for (int r = 0; r < Rows; ++r) {
    label.push_back(r % classes);
    for (int p = 0; p < side * side; ++p)  // stripes whose direction is the class, and something that is not
      x[static_cast<std::size_t>(r * side * side + p)] = std::sin(r + (r % classes == 0   ? p % side
                                                                       : r % classes == 1 ? p / side
                                                                                          : p % side + p / side)) +
                                                         0.3 * std::sin(12.9898 * p * (r + 1));
  }
  std::vector<double> all;
  sw::launch<mesh<D>>([&](auto& rank) {
    using Rank = std::remove_reference_t<decltype(rank)>;
    sw::executor<step<D, Rows>, Rank> run(rank);
    sw::executor<judge<D, Rows>, Rank> evaluation(rank);
    run.initialise(7);
    sw::step_env env;
    env.lr = 0.02;
    env.weight_decay = 0.01;
    env.max_norm = 1;
    std::vector<double> here;
    for (env.step = 1; env.step <= 10; ++env.step) {
      run.set_input(0, x);
      run.set_input(1, label);
      run.run(env);
      here.push_back(run.loss());
    }
    evaluation.copy_parameters(run);
    evaluation.set_input(0, x);
    evaluation.set_input(1, label);
    evaluation.run(env);
    here.push_back(evaluation.loss());
    if (rank.index() == 0) all = here;
  });
  return all;
}

double apart(const std::vector<double>& a, const std::vector<double>& b) {
  REQUIRE(a.size() == b.size());
  double most = 0;
  for (std::size_t i = 0; i < a.size(); ++i) most = std::max(most, std::fabs(a[i] - b[i]));
  return most;
}

}  // namespace

TEST_CASE("a network of images learns, and alike on every mesh") {
  const std::vector<double> want = history<1, 7>();
  CHECK(want[9] < 0.5 * want[0]);
  CHECK(apart(want, history<2, 7>()) < 1e-12);
  CHECK(apart(want, history<3, 7>()) < 1e-12);
  CHECK(apart(want, history<4, 7>()) < 1e-12);
  CHECK(apart(history<1, 3>(), history<4, 3>()) < 1e-12);
}
