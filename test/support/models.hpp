// SPDX-License-Identifier: Apache-2.0
// The models that tests share: two-layer perceptrons, a stack of equal layers, and a small transformer.
#pragma once

#include <cstdint>
#include <shardwise/shardwise.hpp>

namespace test {

namespace sw = shardwise;

// net2(relu(net1(x))), 10 -> 16 -> 10.
template <class Bound = sw::unbound>
struct mlp_module : sw::module<mlp_module<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};

template <class Bound = sw::unbound>
struct simple_model : sw::module<simple_model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (mlp_module<>, mlp_0), (mlp_module<>, mlp_1));
  constexpr auto forward(const auto& x) const { return mlp_1(mlp_0(x)); }
};

template <int Width, class Bound = sw::unbound>
struct linear_relu : sw::module<linear_relu<Width, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<Width, Width>, fc));
  constexpr auto forward(const auto& x) const { return sw::relu(fc(x)); }
};

// Layers times (Linear(Width, Width), ReLU).
template <int Layers, int Width>
struct relu_stack {
  template <class Bound>
  using block = linear_relu<Width, Bound>;

  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::repeat<Layers, block>, mod));
    constexpr auto forward(const auto& x) const { return mod(x); }
  };
};

// Sizes and switches of a transformer; derive and override.
struct transformer_sizes {
  static constexpr int vocabulary = 8;
  static constexpr int time = 16;
  static constexpr int width = 16;
  static constexpr int heads = 4;
  static constexpr int layers = 2;
  static constexpr double dropout = 0;
};

namespace detail {
template <class Sizes, class X>
constexpr auto drop(const X& x) {
  if constexpr (Sizes::dropout > 0) return sw::dropout(x, Sizes::dropout);
  else return x;
}
}  // namespace detail

// Causal self-attention; four projections without bias.
template <class Sizes, class Bound = sw::unbound>
struct causal_attention : sw::module<causal_attention<Sizes, Bound>, Bound> {
  static constexpr int width = Sizes::width, heads = Sizes::heads, size = width / heads;
  SHARDWISE_MEMBERS(Bound, (sw::linear<width, width, sw::unbound, false>, wq),
                    (sw::linear<width, width, sw::unbound, false>, wk), (sw::linear<width, width, sw::unbound, false>, wv),
                    (sw::linear<width, width, sw::unbound, false>, wo));
  template <class X>
  static constexpr auto split(const X& x) {
    return sw::reshape<X::sp.extent[0], X::sp.extent[1], heads, size>(x);
  }
  template <class X>
  static constexpr auto join(const X& x) {
    return sw::reshape<X::sp.extent[0], X::sp.extent[1], width>(x);
  }
  constexpr auto forward(const auto& x) const {
    const auto q = split(wq(x));
    const auto k = split(wk(x));
    const auto v = split(wv(x));
    const auto y = sw::scaled_dot_product_attention<true, sw::head_layout::bthd>(q, k, v);
    return detail::drop<Sizes>(wo(join(y)));
  }
};

template <class Sizes, class Bound = sw::unbound>
struct gelu_mlp : sw::module<gelu_mlp<Sizes, Bound>, Bound> {
  static constexpr int width = Sizes::width;
  SHARDWISE_MEMBERS(Bound, (sw::linear<width, 4 * width>, w1), (sw::linear<4 * width, width>, w2));
  constexpr auto forward(const auto& x) const { return detail::drop<Sizes>(w2(sw::gelu(w1(x)))); }
};

// x + attention(norm(x)), then h + feed_forward(norm(h)).
template <class Sizes, class Bound = sw::unbound>
struct transformer_block : sw::module<transformer_block<Sizes, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::layer_norm_module<Sizes::width>, attention_norm), (causal_attention<Sizes>, attention),
                    (sw::layer_norm_module<Sizes::width>, ffn_norm), (gelu_mlp<Sizes>, feed_forward));
  constexpr auto forward(const auto& x) const {
    const auto h = x + attention(attention_norm(x));
    return h + feed_forward(ffn_norm(h));
  }
};

// Token and learned position embeddings, blocks, a final norm, and the token embedding again as output layer.
template <class Sizes>
struct transformer {
  static constexpr int width = Sizes::width;

  template <class Bound>
  using block = transformer_block<Sizes, Bound>;

  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound,
                      (sw::embedding_table<Sizes::vocabulary, width, sw::unbound, sw::init::normal<1, 5>>, tok_embeddings),
                      (sw::embedding_table<Sizes::time, width, sw::unbound, sw::init::normal<1, 5>>, pos_embeddings),
                      (sw::repeat<Sizes::layers, block>, layers), (sw::layer_norm_module<width>, norm));
    constexpr auto forward(const auto& tokens, const auto& positions) const {
      const auto h = detail::drop<Sizes>(tok_embeddings(tokens) + pos_embeddings(positions));
      return sw::linear_product(norm(layers(h)), tok_embeddings.weight);
    }
  };
};

// --- tasks ----------------------------------------------------------------------------------------------------------

// Inputs of a language model: tokens, targets, positions; the batch is split along Dp.
template <class Sizes, int Batch, class Dp>
using language_inputs = sw::inputs<sw::input_tensor<std::int32_t, sw::shape<Batch, Sizes::time>, sw::on<Dp, sw::shard<0>>>,
                                   sw::input_tensor<std::int32_t, sw::shape<Batch, Sizes::time>, sw::on<Dp, sw::shard<0>>>,
                                   sw::input_tensor<std::int32_t, sw::shape<Sizes::time>, sw::on<Dp, sw::replicate>>>;

template <class Sizes, int Batch, class Dp>
struct language_task {
  using inputs = language_inputs<Sizes, Batch, Dp>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto& targets, const auto& positions) const {
    return sw::cross_entropy(m(tokens, positions), targets);
  }
};

// The same task's losses one by one, (Batch, time).
template <class Sizes, int Batch, class Dp>
struct language_rows {
  using inputs = language_inputs<Sizes, Batch, Dp>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto& targets, const auto& positions) const {
    return sw::cross_entropy_rows(m(tokens, positions), targets);
  }
};

// Sum of all outputs, divided by Divisor; the input (Batch, Width) is placed as Placement says.
template <class T, int Batch, int Width, class Placement, int Divisor = 1>
struct sum_task {
  using inputs = sw::inputs<sw::input_tensor<T, sw::shape<Batch, Width>, Placement>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    if constexpr (Divisor == 1) return sw::sum(m(x));
    else return sw::scale(sw::sum(m(x)), 1.0 / Divisor);
  }
};

// The sums of the single rows, (Batch).
template <class T, int Batch, int Width, class Placement>
struct sum_rows {
  using inputs = sw::inputs<sw::input_tensor<T, sw::shape<Batch, Width>, Placement>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum<1>(m(x)); }
};

}  // namespace test
