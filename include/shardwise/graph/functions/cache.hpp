// SPDX-License-Identifier: Apache-2.0
// Decoding step by step with a key/value cache: cache_update, cached_attention, rotary_embedding from a position on, position_ids. Four
// operations made like users' own; kv_cache (module/kv_cache.hpp) is the module that puts them together.
//
// `position`, int32 (batch), says of each sequence how many tokens came before the new ones, so that prompts of a batch may have
// different lengths: of a padded prompt the padding is written behind the real tokens, where no later query sees it before it is
// written over. A position that is negative, or beyond which the new tokens do not fit the cache, is an exception at run time: on hosts
// one that names the sequence, on GPUs one that names the position, when the rank next waits. Nothing wraps around. No gradient flows
// through a cache: one that is asked for is refused.
#pragma once

#include <shardwise/graph/functions/attention.hpp>
#include <shardwise/graph/functions/rotary.hpp>
#include <shardwise/operations/cache/record.hpp>

namespace shardwise::inline v0_1 {

namespace custom {

inline constexpr custom_operation cache_update{
    .name = "cache_update", .operands = 3, .record = operations::cache_update, .adjoint = &autodiff::unknown};
inline constexpr custom_operation cached_attention{
    .name = "cached_attention", .operands = 4, .record = operations::cached_attention, .adjoint = &autodiff::unknown};
inline constexpr custom_operation position_ids{
    .name = "position_ids", .operands = 2, .record = operations::position_ids, .adjoint = &autodiff::no_derivative};

// Its adjoint is the rotation by minus the angle, which is again one of these.
constexpr void pull_rotary_at(autodiff::pullback& p);
inline constexpr autodiff::adjoint_rule rotary_at_rule = autodiff::pulled<2>(&pull_rotary_at, 1U);
inline constexpr custom_operation rotary_embedding_at{
    .name = "rotary_embedding_at", .operands = 2, .record = operations::rotary_at, .adjoint = &rotary_at_rule};
constexpr void pull_rotary_at(autodiff::pullback& p) {
  auto a = attributes_of<rotary_attributes>(p.n.a);
  a.back = 1 - a.back;
  p.give(0, p.make(rotary_embedding_at, pack_attributes(a), 0, p.dy, p.n.in[1]));
}

}  // namespace custom

// cache with row t of `rows` at position + t along Dim, sequence by sequence: torch's cache[b, position[b]:position[b] + n] = rows[b].
// cache and rows are of equal extents but along Dim, the first dim is the batch. copy_(buffer, cache_update<1>(buffer, rows, position))
// writes a buffer of a module, and then nothing but the rows is moved. Placements: cache and rows alike, cut along any dim but Dim; along
// the batch the position with them.
template <int Dim = 1, tensor Cache, tensor Rows, tensor Position>
constexpr auto cache_update(const Cache& cache, const Rows& rows, const Position& position) {
  constexpr int d = detail::own_dim(Dim, Cache::sp.rank);
  return call<custom::cache_update, pack_attributes(cache_attributes{d})>(cache, rows, position);
}

// scaled_dot_product_attention of new tokens over a cache: query t of a sequence stands at position + t and sees the cache up to
// there, itself included, with `window` the last so many of these. So the cache holds the new tokens' keys and values already. q (batch,
// heads, time, size), keys and values (batch, heads, positions, size), or as `layout` says. Law: row t is the row that
// scaled_dot_product_attention gives of the whole sequence, on hosts bit for bit but where there is a window, else but for rounding.
// `causal` is always so, and nothing is dropped.
// Placements: all cut along the batch; along the heads, position whole; along q's time, or along the size of values, the others reduced.
template <attention_options Options = attention_options(), tensor Q, tensor K, tensor V, tensor Position>
constexpr auto cached_attention(const Q& q, const K& keys, const V& values, const Position& position) {
  if constexpr (!detail::resolved<Q, K, V, Position>) {
    return detail::unresolved<typename Q::mesh_type>{};
  } else {
    constexpr attention_attributes a = detail::attributes_of_options<Options>(0);
    constexpr problem what = !Options.causal || Options.dropout.value() != 0
                                 ? problem::cache_options
                                 : detail::attention_call_problem(a, Options, spec(Q::sp), spec(K::sp), spec(V::sp));
    if constexpr (what != problem::none)
      return detail::refused<what, op_code::custom, operand_t<Q::sp>, operand_t<K::sp>, operand_t<V::sp>>(q, keys, values);
    else
      return call<custom::cached_attention, pack_attributes(a)>(detail::attention_scale(Options.scale, Q::sp.extent[3]), q,
                                                                keys, values, position);
  }
}

// Positions counted from `position`, sequence by sequence. Law: of the same sequence in pieces, the same turned numbers.
template <rotary_options Options = rotary_options(), tensor X, tensor Position>
constexpr auto rotary_embedding(const X& x, const Position& position) {
  constexpr op_attr a = pack_attributes(rotary_attributes{.time = Options.layout == head_layout::bhtd ? 2 : 1,
                                                          .interleaved = Options.form == rotary_form::interleaved ? 1 : 0,
                                                          .base = real(Options.base.value()),
                                                          .back = 0});
  return call<custom::rotary_embedding_at, a>(x, position);
}

// position + t for each token of ids (batch, time): what a table of learned positions is read at, embedding(table, position_ids(...)).
template <tensor X, tensor Position>
constexpr auto position_ids(const X& ids, const Position& position) {
  return call<custom::position_ids>(ids, position);
}

}  // namespace shardwise::inline v0_1
