// SPDX-License-Identifier: Apache-2.0
// Layers: linear, embedding, layer_norm, rms_norm, dropout; shapes and initial values as in torch.nn.
#pragma once

#include <shardwise/module/module.hpp>

namespace shardwise::inline v0_1 {

// x (..., In) -> (..., Out): x weight^T + bias, weight (Out, In). Both uniform in +-1 / sqrt(In).
template <int In, int Out, class Bound = unbound, bool Bias = true, class Init = init::uniform_fan<In>>
struct linear : module<linear<In, Out, Bound, Bias, Init>, Bound> {
  static constexpr module_kind kind = module_kind::linear;
  template <class B>
  using rebound = linear<In, Out, B, Bias, Init>;
  using bias_init = std::conditional_t<std::is_same_v<Init, init::uniform_fan<In>>, Init, init::zeros>;
  SHARDWISE_MEMBERS(Bound, (parameter<shape<Out, In>, Init>, weight),
                    (std::conditional_t<Bias, parameter<shape<Out>, bias_init>, absent>, bias));

  template <class X>
  constexpr auto forward(const X& x) const {
    constexpr bool fits = X::sp.rank > 0 && X::sp.extent[X::sp.rank > 0 ? X::sp.rank - 1 : 0] == In;
    if constexpr (!fits)
      return detail::refused<problem::module_input, detail::no_node, operand_t<X::sp>, linear<In, Out>>(x);
    else if constexpr (Bias) return detail::run_hook<detail::hook::after_product, Bound>(linear_product(x, weight)) + bias;
    else return detail::run_hook<detail::hook::after_product, Bound>(linear_product(x, weight));
  }
};

// index (...) -> (..., Features): rows of weight (Rows, Features).
template <int Rows, int Features, class Bound = unbound, class Init = init::normal<1, 1>>
struct embedding_table : module<embedding_table<Rows, Features, Bound, Init>, Bound> {
  static constexpr module_kind kind = module_kind::embedding;
  template <class B>
  using rebound = embedding_table<Rows, Features, B, Init>;
  SHARDWISE_MEMBERS(Bound, (parameter<shape<Rows, Features>, Init>, weight));

  template <class X>
  constexpr auto forward(const X& index) const {
    return detail::run_hook<detail::hook::after_product, Bound>(embedding(weight, index));
  }
};

// Over the last dim: (x - mean) / sqrt(variance + 1e-5) * weight + bias.
template <int Features, class Bound = unbound>
struct layer_norm_module : module<layer_norm_module<Features, Bound>, Bound> {
  static constexpr module_kind kind = module_kind::norm;
  template <class B>
  using rebound = layer_norm_module<Features, B>;
  SHARDWISE_MEMBERS(Bound, (parameter<shape<Features>, init::ones>, weight),
                    (parameter<shape<Features>, init::zeros>, bias));

  template <class X>
  constexpr auto forward(const X& x) const {
    return layer_norm(x, weight, bias);
  }
};

// Over the last dim: x / sqrt(mean square + 1e-5) * weight.
template <int Features, class Bound = unbound>
struct rms_norm_module : module<rms_norm_module<Features, Bound>, Bound> {
  static constexpr module_kind kind = module_kind::norm;
  template <class B>
  using rebound = rms_norm_module<Features, B>;
  SHARDWISE_MEMBERS(Bound, (parameter<shape<Features>, init::ones>, weight));

  template <class X>
  constexpr auto forward(const X& x) const {
    return rms_norm(x, weight);
  }
};

// dropout(x, Num / Den) where it trains, and x itself, with no random site, where it evaluates (run_mode).
template <int Num, int Den, class Bound = unbound>
struct dropout_module : module<dropout_module<Num, Den, Bound>, Bound> {
  template <class B>
  using rebound = dropout_module<Num, Den, B>;

  template <class X>
  constexpr auto forward(const X& x) const {
    if constexpr (training<Bound>) return dropout(x, static_cast<double>(Num) / Den);
    else return x;
  }
};

}  // namespace shardwise::inline v0_1
