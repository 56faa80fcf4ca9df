// SPDX-License-Identifier: Apache-2.0
// Kernels of decoding step by step on the host. Attention runs in the tiles of the whole sequence's, sequence by sequence, each of which
// has its own first query.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include <shardwise/graph/functions/cache.hpp>
#include <shardwise/operations/attention/host.hpp>
#include <shardwise/operations/rotary/host.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

[[noreturn]] inline void refuse_position(const char* what, std::int64_t sequence, std::int64_t position, std::int64_t tokens,
                                         std::int64_t positions) {
  const std::string of = std::string("shardwise: ") + what + ": sequence " + std::to_string(sequence) + " has position " +
                         std::to_string(position);
  if (position < 0)
    throw std::out_of_range(of + ", which is negative; give the number of tokens that came before, 0 for none");
  throw std::out_of_range(of + " and " + std::to_string(tokens) + " new tokens, and the cache has " +
                          std::to_string(positions) +
                          " positions; begin anew at position 0 with the last tokens, or give the cache more positions");
}

inline constexpr std::int64_t most_position_id = std::int64_t{1} << 31;

// The position of sequence b of the block. positions: of the cache; < 0: there is none.
template <class T>
constexpr std::int64_t checked_position(const char* what, const kernel_arguments<T>& k, std::int64_t b, std::int64_t tokens,
                                        std::int64_t positions) {
  const std::int64_t at = k.index()[b];
  if (at < 0 || (positions >= 0 && at + tokens > positions))
    refuse_position(what, k.origin(0, 0) + b, at, tokens, positions);
  return at;
}

// The position of sequence b of the block, whose tokens up to `tokens` have ids of int32.
template <class T>
constexpr std::int64_t checked_first_id(const kernel_arguments<T>& k, std::int64_t b, std::int64_t tokens) {
  const std::int64_t at = checked_position("position_ids", k, b, tokens, -1);
  if (at + tokens > most_position_id)
    throw std::out_of_range("shardwise: position_ids: sequence " + std::to_string(k.origin(0, 0) + b) + " has position " +
                            std::to_string(at) + " and " + std::to_string(tokens) +
                            " new tokens, and ids of int32 end at 2147483647; begin anew at position 0");
  return at;
}

// Blocks as (batch, lines, positions, elements side by side).
struct cache_blocks {
  std::int64_t batch = 0, lines = 1, positions = 0, rows = 0, inner = 1;
};
template <class T>
constexpr cache_blocks cache_blocks_of(const kernel_arguments<T>& k) {
  const int dim = static_cast<int>(k.template attributes<cache_attributes>().dim);
  cache_blocks b;
  b.batch = k.extent(0, 0);
  for (int d = 1; d < dim; ++d) b.lines *= k.extent(0, d);
  for (int d = dim + 1; d < k.rank(0); ++d) b.inner *= k.extent(0, d);
  b.positions = k.extent(0, dim);
  b.rows = k.extent(1, dim);
  return b;
}

// A call's queries as those of one sequence from its position on, which sees no further than they go.
template <class T, class Sum>
constexpr attention_call<T, Sum> at_position(attention_call<T, Sum> x, std::int64_t first_query, std::int64_t position,
                                             std::int64_t whole_queries) {
  x.first_query = position + first_query;
  x.keys = position + whole_queries;
  return x;
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::cache_update> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const host::cache_blocks c = host::cache_blocks_of(k);
    const std::int64_t line = c.positions * c.inner, fresh = c.rows * c.inner;
    const interval of = k.share(c.batch * c.lines);
    for (std::int64_t i = of.begin; i < of.begin + of.size; ++i) {
      const std::int64_t at = host::checked_position("cache_update", k, i / c.lines, c.rows, c.positions);
      T* const to = k.out() + i * line;
      const T *const cache = k.in(0) + i * line, *const rows = k.in(1) + i * fresh;
      if (k.in(0) != k.out())
        for (std::int64_t j = 0; j < line; ++j) to[j] = cache[j];
      for (std::int64_t j = 0; j < fresh; ++j) to[at * c.inner + j] = rows[j];
    }
  }
};

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::cached_attention> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const host::attention_call<T> all = host::attention_call_of(k, operations::attention_inputs);
    const host::attention_block<T> out(k.out(), all.a, all.heads, all.queries, all.value_size);
    host::each_group(all, [&](std::int64_t b, std::int64_t h) {
      const std::int64_t at = host::checked_position("cached_attention", k, b, all.whole_queries, all.keys);
      attend(host::at_position(all, all.first_query, at, all.whole_queries), out, b, h, k);
    });
  }

 private:
  template <class T>
  static constexpr void attend(const host::attention_call<T>& x, const host::attention_block<T>& out, std::int64_t b,
                               std::int64_t h, const kernel_arguments<T>& k) {
    if constexpr (std::is_floating_point_v<T>) {
      namespace d = host::attention_detail;
      const d::finite_heads<T> finite(x, nullptr, d::checked_by_heads{});
      if (!finite(b, h)) return host::attend_group<T>(x, b, h, out, static_cast<T*>(nullptr));
      const d::tile_space<T> w(k.scratch(), x.queries, k.extent(1, x.a.time()), false);
      host::attention_drops none;
      d::each_query_tile(x, b, h, [&](const d::tile& t) { d::attend_tiles(x, t, w, none, out, static_cast<T*>(nullptr)); });
    } else {
      host::attend_group<T>(x, b, h, out, static_cast<T*>(nullptr));
    }
  }
};

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::rotary_embedding_at> {
  static constexpr bool in_shares = true;
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const host::rotary_block all = host::rotary_block_of(k);
    T *const cosine = k.scratch(), *const sine = cosine + all.size / 2;
    const interval of = k.share(all.batch * all.times);
    for (std::int64_t n = of.begin; n < of.begin + of.size; ++n) {
      const std::int64_t b = n / all.times, t = n % all.times;
      host::rotary_block r = all;
      r.first += static_cast<double>(host::checked_position("rotary_embedding", k, b, all.times, -1));
      host::rotary_turn(r, t, cosine, sine);
      for (std::int64_t h = 0; h < r.others; ++h) host::rotate_pairs(r, k.in(0), k.out(), r.at(b, t, h), cosine, sine);
    }
  }
};

template <>
struct SHARDWISE_HIDDEN host_kernel<custom::position_ids> {
  template <class T>
  static constexpr void run(const kernel_arguments<T>& k) {
    const std::int64_t times = k.extent(1);
    for (std::int64_t b = 0; b < k.extent(0); ++b) {
      const std::int64_t at = host::checked_first_id(k, b, k.origin(0, 1) + times);
      for (std::int64_t t = 0; t < times; ++t) k.out()[b * times + t] = T(static_cast<int>(at + k.origin(0, 1) + t));
    }
  }
};

}  // namespace shardwise::inline v0_1
