// SPDX-License-Identifier: Apache-2.0
// A byte-level GPT as shardwise modules: pre-norm blocks, learned positions, the head tied to the byte table.
#pragma once

#include <shardwise/shardwise.hpp>

namespace train_text {

namespace sw = shardwise;

// Sizes; Batch is the global number of sequences of a step.
template <int Batch, int Time, int Width, int Heads, int Layers, int Bytes = 256>
struct config {
  static constexpr int batch = Batch, time = Time, width = Width, heads = Heads, layers = Layers, bytes = Bytes;
  static constexpr int head = Width / Heads, hidden = 4 * Width;
  static_assert(Width % Heads == 0, "the width must be a multiple of the number of heads");
};

// GPT-2's initial values: 0.02, and less where a block writes into the residual stream.
using narrow = sw::init::normal<20, 1000>;
using residual = sw::init::normal<7, 1000>;

template <class C, class Bound>
struct attention : sw::module<attention<C, Bound>, Bound> {
  using query_type = sw::linear<C::width, C::width, sw::child<Bound, 0>, true, narrow>;
  using key_type = sw::linear<C::width, C::width, sw::child<Bound, 1>, true, narrow>;
  using value_type = sw::linear<C::width, C::width, sw::child<Bound, 2>, true, narrow>;
  using out_type = sw::linear<C::width, C::width, sw::child<Bound, 3>, true, residual>;
  BOOST_HANA_DEFINE_STRUCT(attention, (query_type, wq), (key_type, wk), (value_type, wv), (out_type, wo));

  template <class X>
  constexpr auto forward(const X& x) const {
    constexpr std::int64_t b = X::sp.extent[0], t = X::sp.extent[1];
    const auto q = sw::reshape<b, t, C::heads, C::head>(wq(x));
    const auto k = sw::reshape<b, t, C::heads, C::head>(wk(x));
    const auto v = sw::reshape<b, t, C::heads, C::head>(wv(x));
    const auto y = sw::scaled_dot_product_attention<true, sw::head_layout::bthd>(q, k, v);
    return wo(sw::reshape<b, t, C::width>(y));
  }
};

template <class C, class Bound>
struct feed_forward : sw::module<feed_forward<C, Bound>, Bound> {
  using up_type = sw::linear<C::width, C::hidden, sw::child<Bound, 0>, true, narrow>;
  using down_type = sw::linear<C::hidden, C::width, sw::child<Bound, 1>, true, residual>;
  BOOST_HANA_DEFINE_STRUCT(feed_forward, (up_type, up), (down_type, down));

  template <class X>
  constexpr auto forward(const X& x) const {
    return down(sw::gelu<sw::gelu_form::tanh>(up(x)));
  }
};

template <class C, class Bound>
struct block : sw::module<block<C, Bound>, Bound> {
  using norm1_type = sw::layer_norm_module<C::width, sw::child<Bound, 0>>;
  using attn_type = attention<C, sw::child<Bound, 1>>;
  using norm2_type = sw::layer_norm_module<C::width, sw::child<Bound, 2>>;
  using ffn_type = feed_forward<C, sw::child<Bound, 3>>;
  BOOST_HANA_DEFINE_STRUCT(block, (norm1_type, norm1), (attn_type, attn), (norm2_type, norm2), (ffn_type, ffn));

  template <class X>
  constexpr auto forward(const X& x) const {
    const auto h = x + attn(norm1(x));
    return h + ffn(norm2(h));
  }
};

// One vector for each position, added to what stands there.
template <class C, class Bound>
struct positions : sw::module<positions<C, Bound>, Bound> {
  using weight_type = sw::parameter<sw::shape<C::time, C::width>, narrow, sw::child<Bound, 0>>;
  BOOST_HANA_DEFINE_STRUCT(positions, (weight_type, weight));

  template <class X>
  constexpr auto forward(const X& x) const {
    return x + weight;
  }
};

template <class C>
struct gpt_of {
  template <class B>
  using layer = block<C, B>;

  template <class Bound = sw::unbound>
  struct gpt : sw::module<gpt<Bound>, Bound> {
    using table_type = sw::embedding_table<C::bytes, C::width, sw::child<Bound, 0>, narrow>;
    using positions_type = positions<C, sw::child<Bound, 1>>;
    using layers_type = sw::repeat<C::layers, layer, sw::child<Bound, 2>>;
    using norm_type = sw::layer_norm_module<C::width, sw::child<Bound, 3>>;
    BOOST_HANA_DEFINE_STRUCT(gpt, (table_type, bytes), (positions_type, position), (layers_type, layers), (norm_type, norm));

    // bytes (batch, time) -> logits (batch, time, 256)
    template <class X>
    constexpr auto forward(const X& x) const {
      return sw::linear_product(norm(layers(position(bytes(x)))), bytes.weight);
    }
  };
};

// Column-wise into the heads and the hidden layer, row-wise out of them: two all-reduces a block each way.
template <class C, class Data, class Tensor>
using megatron_plan = sw::plan<sw::data_parallel<Data>,
                               sw::at<"layers.*.attn.w[qkv]", sw::colwise<Tensor, C::head>>,
                               sw::at<"layers.*.attn.wo", sw::rowwise<Tensor, C::head>>,
                               sw::at<"layers.*.ffn.up", sw::colwise<Tensor>>,
                               sw::at<"layers.*.ffn.down", sw::rowwise<Tensor>>>;

// Mean cross-entropy in nats over all positions of the batch.
template <class C, class Data>
struct next_byte {
  using ids = sw::input_tensor<std::int32_t, sw::shape<C::batch, C::time>, sw::on<Data, sw::shard<0>>>;
  using inputs = sw::inputs<ids, ids>;
  constexpr auto operator()(const auto& model, const auto& bytes, const auto& next) const {
    return sw::cross_entropy(model(bytes), next);
  }
};

// The logits themselves, for sampling.
template <class C, class Data>
struct predict {
  using inputs = sw::inputs<sw::input_tensor<std::int32_t, sw::shape<C::batch, C::time>, sw::on<Data, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& bytes) const { return model(bytes); }
};

}  // namespace train_text
