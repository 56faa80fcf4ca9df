// SPDX-License-Identifier: Apache-2.0
// A byte-level GPT as shardwise modules: pre-norm blocks, learned positions, the head tied to the byte table.
#pragma once

#include <shardwise/core.hpp>

namespace train_text {

namespace sw = shardwise;

// Sizes; Batch is the global number of sequences of a step.
template <int Batch, int Time, int Width, int Heads, int Layers, int Bytes = 256>
struct config {
  static constexpr int batch = Batch, time = Time, width = Width, heads = Heads, layers = Layers, bytes = Bytes;
  static constexpr int head = Width / Heads, hidden = 4 * Width;
  static constexpr bool cached = false;
  using cache = sw::absent;  // of attention's keys and values: see decoding.hpp
  static_assert(Width % Heads == 0, "the width must be a multiple of the number of heads");
};

// GPT-2's initial values: 0.02, and less where a block writes into the residual stream.
using narrow = sw::init::normal<20, 1000>;
using residual = sw::init::normal<7, 1000>;
template <int In, int Out, class Init>
using linear = sw::linear<In, Out, sw::unbound, true, Init>;

template <class C, class Bound = sw::unbound>
struct attention : sw::module<attention<C, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (linear<C::width, C::width, narrow>, wq), (linear<C::width, C::width, narrow>, wk),
                    (linear<C::width, C::width, narrow>, wv), (linear<C::width, C::width, residual>, wo),
                    (typename C::cache, cache));

  template <class X, class... Position>
  constexpr auto forward(const X& x, const Position&... position) const {
    const auto q = sw::unflatten<-1, C::heads, C::head>(wq(x));
    const auto k = sw::unflatten<-1, C::heads, C::head>(wk(x));
    const auto v = sw::unflatten<-1, C::heads, C::head>(wv(x));
    if constexpr (C::cached) return wo(sw::flatten<2, 3>(cache(q, k, v, position...)));
    else return wo(sw::flatten<2, 3>(sw::scaled_dot_product_attention<true, sw::head_layout::bthd>(q, k, v)));
  }
};

template <class C, class Bound = sw::unbound>
struct feed_forward : sw::module<feed_forward<C, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (linear<C::width, C::hidden, narrow>, up), (linear<C::hidden, C::width, residual>, down));

  template <class X>
  constexpr auto forward(const X& x) const {
    return down(sw::gelu<sw::gelu_form::tanh>(up(x)));
  }
};

template <class C, class Bound = sw::unbound>
struct block : sw::module<block<C, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::layer_norm_module<C::width>, norm1), (attention<C>, attn),
                    (sw::layer_norm_module<C::width>, norm2), (feed_forward<C>, ffn));

  template <class X, class... Position>
  constexpr auto forward(const X& x, const Position&... position) const {
    const auto h = x + attn(norm1(x), position...);
    return h + ffn(norm2(h));
  }
};

// One vector for each position, added to what stands there.
template <class C, class Bound = sw::unbound>
struct positions : sw::module<positions<C, Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<C::time, C::width>, narrow>, weight));

  template <class X>
  constexpr auto forward(const X& x) const {
    return x + weight;
  }
  template <class X, class Bytes, class Position>
  constexpr auto forward(const X& x, const Bytes& bytes, const Position& position) const {
    return x + sw::embedding(weight, C::position_ids(bytes, position));
  }
};

template <class C>
struct gpt_of {
  template <class B>
  using layer = block<C, B>;

  template <class Bound = sw::unbound>
  struct gpt : sw::module<gpt<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::embedding_table<C::bytes, C::width, sw::unbound, narrow>, bytes), (positions<C>, position),
                      (sw::repeat<C::layers, layer>, layers), (sw::layer_norm_module<C::width>, norm));

    // bytes (batch, time) -> logits (batch, time, 256); with a cache, of bytes that follow the first `at` (batch) of their sequences
    template <class X>
    constexpr auto forward(const X& x) const {
      return sw::linear_product(norm(layers(position(bytes(x)))), bytes.weight);
    }
    template <class X, class At>
    constexpr auto forward(const X& x, const At& at) const {
      return sw::linear_product(norm(layers(position(bytes(x), x, at), at)), bytes.weight);
    }
  };
};

// Column-wise into the heads and the hidden layer, row-wise out of them: two all-reduces a block each way. More: what the plan says
// beside that.
template <class C, class Tensor, class... More>
using megatron = sw::plan<More..., sw::at<"layers.*.attn.w[qkv]", sw::colwise<Tensor, C::head>>,
                          sw::at<"layers.*.attn.wo", sw::rowwise<Tensor, C::head>>,
                          sw::at<"layers.*.ffn.up", sw::colwise<Tensor>>, sw::at<"layers.*.ffn.down", sw::rowwise<Tensor>>>;
template <class C, class Data, class Tensor>
using megatron_plan = megatron<C, Tensor, sw::data_parallel<Data>>;

// Mean cross-entropy in nats over all positions of the batch, which the axes Data split.
template <class C, class... Data>
struct next_byte {
  using ids = sw::input_tensor<std::int32_t, sw::shape<C::batch, C::time>, sw::on<Data, sw::shard<0>>...>;
  using inputs = sw::inputs<ids, ids>;
  constexpr auto operator()(const auto& model, const auto& bytes, const auto& next) const {
    return sw::cross_entropy(model(bytes), next);
  }
};

}  // namespace train_text
