// SPDX-License-Identifier: Apache-2.0
// kv_cache: keys and values of all positions so far, as buffers of a module, and the attention that reads them.
#pragma once

#include <shardwise/graph/functions/cache.hpp>
#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/module.hpp>
#include <shardwise/module/style.hpp>

namespace shardwise::inline v0_1 {

// A member of an attention module. Heads: of keys and values, which may be fewer than the queries'. forward(q, k, v, position), all of
// (batch, time, heads, size) as projections leave them, writes k and v into the buffers key and value, (Batch, Positions, Heads, Size), and
// attends over what they hold. The same program reads a prompt (prefill: as many tokens as time is) and decodes token by token (time is 1):
// give its time a run-time extent, dyn<most>, and resize the executor. A sequence begins at position 0; what was there before need
// not be cleared. Elements are the model's: where queries are of another type (mixed), attention is in the cache's.
//
// Placed whole, or by its styles: at<"layers.*.attn.cache", cache_heads<tp>, cache_batch<dp>>. What a training has saved is loaded with
// load_contents::weights, since it has no caches. Where it trains it is refused: no gradient flows through a cache.
template <int Batch, int Positions, int Heads, int Size, attention_options Options = attention_options(),
          class Bound = unbound>
struct kv_cache : module<kv_cache<Batch, Positions, Heads, Size, Options, Bound>, Bound> {
  template <class B>
  using rebound = kv_cache<Batch, Positions, Heads, Size, Options, B>;
  using tensors = shape<Batch, Positions, Heads, Size>;
  SHARDWISE_MEMBERS(Bound, (buffer<tensors, init::zeros>, key), (buffer<tensors, init::zeros>, value));

  template <class Q, class K, class V, class Position>
  constexpr auto forward(const Q& q, const K& k, const V& v, const Position& position) const {
    if constexpr (training<Bound>) {
      return detail::refused<problem::cache_training, detail::no_node, kv_cache>(q, k, v, position);
    } else {
      constexpr attention_options how = [] {
        attention_options o = Options;
        o.layout = head_layout::bthd;
        return o;
      }();
      copy_(key, cache_update<1>(key, type_as(k, key), position));
      copy_(value, cache_update<1>(value, type_as(v, value), position));
      return type_as(cached_attention<how>(type_as(q, key), key, value, position), q);
    }
  }

 private:
  template <class X, class Y>
  static constexpr auto type_as(const X& x, const Y&) {
    if constexpr (!detail::resolved<X, Y>) return x;
    else if constexpr (X::sp.type == Y::sp.type) return x;
    else return cast<element_t<Y::sp.type>>(x);
  }
};

// Where a kv_cache lies: its heads over the ranks of Axis, as colwise projections leave them; its sequences, as the batch is split.
template <class Axis>
struct cache_heads : detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(module_kind k) { return k == module_kind::other; }
  static constexpr detail::maybe_placement parameter(module_kind, std::string_view name, int) {
    return {name == "key" || name == "value", shard_value(2)};
  }
};
template <class Axis>
struct cache_batch : detail::style_base {
  using axis = Axis;
  static constexpr bool accepts(module_kind k) { return k == module_kind::other; }
  static constexpr detail::maybe_placement parameter(module_kind, std::string_view name, int) {
    return {name == "key" || name == "value", shard_value(0)};
  }
};

}  // namespace shardwise::inline v0_1
