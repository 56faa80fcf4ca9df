// SPDX-License-Identifier: Apache-2.0
// A GPT: tables of tokens and positions, blocks of causal attention and a feed-forward network, a head tied to the tokens.

#include <cstdint>
#include <vector>

#include <shardwise/runtime/program/shared_parameters.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
inline constexpr int batch = 4, length = 12, width = 16, heads = 2, words = 7;

template <class Bound = sw::unbound>
struct block : sw::module<block<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::layer_norm_module<width>, norm1), (sw::linear<width, width>, wq),
                    (sw::linear<width, width>, wk), (sw::linear<width, width>, wv), (sw::linear<width, width>, wo),
                    (sw::layer_norm_module<width>, norm2), (sw::linear<width, 4 * width>, up),
                    (sw::linear<4 * width, width>, down));
  static constexpr auto split(const auto& x) { return sw::unflatten<-1, heads, width / heads>(x); }
  constexpr auto forward(const auto& x) const {
    constexpr sw::attention_options causal{.causal = true, .layout = sw::head_layout::bthd};
    const auto n = norm1(x);
    const auto h =
        x + wo(sw::flatten<2, 3>(sw::scaled_dot_product_attention<causal>(split(wq(n)), split(wk(n)), split(wv(n)))));
    return h + down(sw::gelu(up(norm2(h))));
  }
};
template <class Bound = sw::unbound>
struct gpt : sw::module<gpt<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::embedding_table<words, width>, tokens),
                    (sw::parameter<sw::shape<length, width>, sw::init::normal<2, 100>>, positions),
                    (sw::repeat<2, block>, layers), (sw::layer_norm_module<width>, norm));
  constexpr auto forward(const auto& ids) const {
    return sw::linear_product(norm(layers(tokens(ids) + positions)), tokens.weight);
  }
};
using ids = sw::input_tensor<std::int32_t, sw::shape<batch, length>, sw::on<dp, sw::shard<0>>>;
struct next_token {
  using inputs = sw::inputs<ids, ids>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& next) const {
    return sw::cross_entropy(model(x), next);
  }
};
struct logits {
  using inputs = sw::inputs<ids>;
  constexpr auto operator()(const auto& model, const auto& x) const { return model(x); }
};
using plan = sw::plan<sw::data_parallel<dp>>;
using step = sw::train_step<gpt, next_token, plan, mesh, sw::adamw<>>;
using judge = sw::with_parameters_of<sw::forward_step<gpt, logits, plan, mesh>, step>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<std::int32_t> x(batch * length), next(batch * length);
    sw::step_env env;
    env.lr = 0.01;
    env.weight_decay = 0.01;
    for (env.step = 1; env.step <= 80; ++env.step) {
      for (int i = 0; i < batch * length; ++i) {
        const int at = i % length + i / length + static_cast<int>(env.step);  // the text 0 1 2 3 4 5 6 0 1 ...
        x[i] = at % words, next[i] = (at + 1) % words;
      }
      run.set_input(0, x);
      run.set_input(1, next);
      run.run(env);
    }
    check(run.loss() < 0.1F, "the text is learned");

    sw::executor<judge> test(rank, run);
    test.set_input(0, x);
    test.run({});
    const std::vector<float> before(test.output().begin(), test.output().end());  // of this rank's two texts
    for (int b = 0; b < batch; ++b) x[b * length + 8] = (x[b * length + 8] + 3) % words;
    test.set_input(0, x);
    test.run({});
    for (std::size_t i = 0; i < before.size(); ++i)
      if (static_cast<int>(i) / words % length < 8) check(test.output()[i] == before[i], "nothing later is seen");
  });
}
