// SPDX-License-Identifier: Apache-2.0
// shape: the extents of a tensor, static ones and those that a run decides (dyn.hpp).
#pragma once

#include <cstdint>

#include <shardwise/vocabulary/dyn.hpp>

namespace shardwise::inline v0_1 {

inline constexpr int max_rank = 8;

template <std::int64_t... Extents>
struct shape {
  static constexpr int rank = static_cast<int>(sizeof...(Extents));
  static constexpr std::int64_t extent[sizeof...(Extents) ? sizeof...(Extents) : 1] = {Extents...};
};

namespace detail {
template <class T>
inline constexpr bool is_shape = false;
template <std::int64_t... Extents>
inline constexpr bool is_shape<shape<Extents...>> = true;
}  // namespace detail

namespace detail {
template <class Sink, std::int64_t... Extents>
constexpr void put_extents(Sink& out, shape<Extents...>) {
  bool first = true;
  ((text::put(out, first ? "" : ", "), put_extent(out, Extents), first = false), ...);
}
}  // namespace detail

template <std::int64_t... Extents>
struct written<shape<Extents...>> {
  template <class Sink>
  static constexpr void put(Sink& out) {
    text::put(out, "shape<");
    detail::put_extents(out, shape<Extents...>{});
    out.push_back('>');
  }
};
template <std::int64_t... Extents>
struct fact<shape<Extents...>> : detail::type_fact<"shape", shape<Extents...>> {};

constexpr std::int64_t ceil_div(std::int64_t a, std::int64_t b) { return (a + b - 1) / b; }

// Of non-negative numbers; std::gcd's header costs 40 ms a source.
constexpr std::int64_t gcd(std::int64_t a, std::int64_t b) {
  while (b != 0) {
    const std::int64_t r = a % b;
    a = b;
    b = r;
  }
  return a;
}

}  // namespace shardwise::inline v0_1
