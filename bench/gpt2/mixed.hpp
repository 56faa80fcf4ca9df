// SPDX-License-Identifier: Apache-2.0
// The model of model.hpp with activations of two bytes: parameters, their gradients and the optimizer's states are float, each
// parameter is rounded where it is used, and its gradient is cast back. What a bfloat16 autocast does, written out.
#pragma once

#include <shardwise/shardwise.hpp>

#include "../../examples/train_text/model.hpp"

namespace gpt2 {

namespace sw = shardwise;
namespace tt = train_text;

template <class Low, int In, int Out, class Init, class Bound = sw::unbound>
struct linear : sw::module<linear<Low, In, Out, Init, Bound>, Bound> {
  template <class B>
  using rebound = linear<Low, In, Out, Init, B>;
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<Out, In>, Init>, weight),
                    (sw::parameter<sw::shape<Out>, sw::init::zeros>, bias));

  template <class X>
  constexpr auto forward(const X& x) const {
    return sw::linear_product(x, sw::cast<Low>(weight)) + sw::cast<Low>(bias);
  }
};

template <class Low, int Width, class Bound = sw::unbound>
struct norm : sw::module<norm<Low, Width, Bound>, Bound> {
  template <class B>
  using rebound = norm<Low, Width, B>;
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<Width>, sw::init::ones>, weight),
                    (sw::parameter<sw::shape<Width>, sw::init::zeros>, bias));

  template <class X>
  constexpr auto forward(const X& x) const {
    return sw::layer_norm(x, sw::cast<Low>(weight), sw::cast<Low>(bias));
  }
};

template <class Low, class C, class Bound = sw::unbound>
struct attention : sw::module<attention<Low, C, Bound>, Bound> {
  template <class B>
  using rebound = attention<Low, C, B>;
  SHARDWISE_MEMBERS(Bound, (linear<Low, C::width, C::width, tt::narrow>, wq),
                    (linear<Low, C::width, C::width, tt::narrow>, wk), (linear<Low, C::width, C::width, tt::narrow>, wv),
                    (linear<Low, C::width, C::width, tt::residual>, wo));

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

template <class Low, class C, class Bound = sw::unbound>
struct feed_forward : sw::module<feed_forward<Low, C, Bound>, Bound> {
  template <class B>
  using rebound = feed_forward<Low, C, B>;
  SHARDWISE_MEMBERS(Bound, (linear<Low, C::width, C::hidden, tt::narrow>, up),
                    (linear<Low, C::hidden, C::width, tt::residual>, down));

  template <class X>
  constexpr auto forward(const X& x) const {
    return down(sw::gelu<sw::gelu_form::tanh>(up(x)));
  }
};

template <class Low, class C, class Bound = sw::unbound>
struct block : sw::module<block<Low, C, Bound>, Bound> {
  template <class B>
  using rebound = block<Low, C, B>;
  SHARDWISE_MEMBERS(Bound, (norm<Low, C::width>, norm1), (attention<Low, C>, attn), (norm<Low, C::width>, norm2),
                    (feed_forward<Low, C>, ffn));

  template <class X>
  constexpr auto forward(const X& x) const {
    const auto h = x + attn(norm1(x));
    return h + ffn(norm2(h));
  }
};

template <class Low, class C>
struct mixed {
  template <class B>
  using layer = block<Low, C, B>;

  template <class Bound = sw::unbound>
  struct gpt : sw::module<gpt<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::embedding_table<C::bytes, C::width, sw::unbound, tt::narrow>, bytes),
                      (tt::positions<C>, position), (sw::repeat<C::layers, layer>, layers), (norm<Low, C::width>, norm_f));

    template <class X>
    constexpr auto forward(const X& x) const {
      return sw::linear_product(norm_f(layers(sw::cast<Low>(position(bytes(x))))), sw::cast<Low>(bytes.weight));
    }
  };
};

// Of elements of type E: float is the example's model as it is.
template <class E, class C>
struct model_of : mixed<E, C> {};
template <class C>
struct model_of<float, C> : tt::gpt_of<C> {};

}  // namespace gpt2
