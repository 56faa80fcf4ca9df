// SPDX-License-Identifier: Apache-2.0
// A convolutional network with batch norm: trained on stripes that lie or stand, judged image by image.

#include <cmath>
#include <cstdint>
#include <vector>

#include <shardwise/more_functions.hpp>
#include <shardwise/runtime/program/shared_parameters.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
inline constexpr int rows = 16, side = 8;

template <class Bound = sw::unbound>
struct network : sw::module<network<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::conv2d_module<1, 4, 3, sw::convolution_options{.padding = 1}, sw::unbound, false>, conv),
                    (sw::batch_norm2d_module<4>, norm), (sw::linear<4 * side * side / 4, 2>, head));
  constexpr auto forward(const auto& x) const {
    return head(sw::flatten<1, 3>(sw::max_pool2d<sw::pool_options{.kernel = 2}>(sw::relu(norm(conv(x))))));
  }
};
using images = sw::input_tensor<float, sw::shape<rows, 1, side, side>, sw::on<dp, sw::shard<0>>>;
struct task {
  using inputs = sw::inputs<images, sw::input_tensor<std::int32_t, sw::shape<rows>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    return sw::cross_entropy(model(x), label);
  }
};
struct logits {
  using inputs = sw::inputs<images>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
using plan = sw::plan<sw::data_parallel<dp>>;
using step = sw::train_step<network, task, plan, mesh, sw::adam<>>;
using judge = sw::with_parameters_of<sw::forward_step<network, logits, plan, mesh>, step>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(rows * side * side);
    std::vector<std::int32_t> label(rows);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 60; ++env.step) {
      for (int i = 0; i < rows; ++i) {
        label[i] = i % 2;
        for (int p = 0; p < side * side; ++p)
          x[i * side * side + p] = std::sin((label[i] ? p % side : p / side) * 1.5F + i + env.step);
      }
      run.set_input(0, x);
      run.set_input(1, label);
      run.run(env);
    }
    sw::executor<judge> test(rank, run);
    test.set_input(0, x);
    test.run({});
    const std::vector<float> all = test.full_output();  // of all images, on every rank
    for (int i = 0; i < rows; ++i) check((all[2 * i + 1] > all[2 * i]) == (label[i] == 1), "each image is told right");
    for (std::size_t p = side * side; p < x.size(); ++p) x[p] = 9;  // other images beside the first
    test.set_input(0, x);
    test.run({});
    const std::vector<float> again = test.full_output();
    check(again[0] == all[0] && again[1] == all[1], "an image's logits do not depend on its neighbours");
  });
}
