// SPDX-License-Identifier: Apache-2.0
// A vision transformer: patches, a class token, positions, encoder blocks, a head.

#include <cmath>
#include <cstdint>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
inline constexpr int rows = 16, side = 8, patch = 4, patches = (side / patch) * (side / patch), width = 16, heads = 2;

template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::layer_norm_module<width>, norm1), (sw::linear<width, width>, wq),
                    (sw::linear<width, width>, wk), (sw::linear<width, width>, wv), (sw::linear<width, width>, wo),
                    (sw::layer_norm_module<width>, norm2), (sw::linear<width, 2 * width>, up),
                    (sw::linear<2 * width, width>, down));
  static constexpr auto split(const auto& x) { return sw::unflatten<-1, heads, width / heads>(x); }
  constexpr auto forward(const auto& x) const {
    constexpr sw::attention_options all{.causal = false, .layout = sw::head_layout::bthd};
    const auto n = norm1(x);
    const auto h =
        x + wo(sw::flatten<2, 3>(sw::scaled_dot_product_attention<all>(split(wq(n)), split(wk(n)), split(wv(n)))));
    return h + down(sw::gelu(up(norm2(h))));
  }
};
template <class Bound = sw::unbound>
struct vit : sw::module<vit<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::conv2d_module<1, width, patch, sw::convolution_options{.stride = patch}>, embed),
                    (sw::parameter<sw::shape<1, width>, sw::init::normal<2, 100>>, class_token),
                    (sw::parameter<sw::shape<patches + 1, width>, sw::init::normal<2, 100>>, positions),
                    (sw::repeat<2, block>, layers), (sw::layer_norm_module<width>, norm), (sw::linear<width, 2>, head));
  constexpr auto forward(const auto& image) const {
    const auto x = sw::transpose<1, 2>(sw::flatten<2, 3>(embed(image)));      // (rows, patches, width)
    const auto first = class_token + sw::zeros_like(sw::narrow<1, 0, 1>(x));  // one for each image, on the rank that has it
    const auto y = layers(sw::cat<1>(first, x) + positions);
    return head(norm(sw::select<1, 0>(y)));
  }
};
struct task {
  using images = sw::input_tensor<float, sw::shape<rows, 1, side, side>, sw::on<dp, sw::shard<0>>>;
  using labels = sw::input_tensor<std::int32_t, sw::shape<rows>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<images, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    return sw::cross_entropy(model(x), label);
  }
};
using step = sw::train_step<vit, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>;

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
    check(run.loss() < 0.1F, "lying and standing stripes are told apart");
  });
}
