// SPDX-License-Identifier: Apache-2.0
// Extents among the attributes of an operation: those that reshape and broadcast give to their operand.
#pragma once

#include <initializer_list>

#include <shardwise/propagation/op.hpp>
#include <shardwise/vocabulary/spec.hpp>

namespace shardwise::inline v0_1 {

// Eight extents in six words. No tensor has more than 2^57 elements, so at most one of its extents reaches 2^32. v0 to v3 hold
// the low 32 bits of two extents each, v4 the other bits of the one extent that has more, v5 the rank (bits 0 to 7), the dim of
// the large extent (16 to 23) and each dim's run-time sizes (32 to 63, four bits a dim). Extents are spelled as in shape<...>.
// Law: packed_rank(pack_extents(e, rank)) == rank and packed_extent(pack_extents(e, rank), d) == e[d], unless packed_problem says
// why these extents have no place (test/static/propagation/extents.cpp).
static_assert(max_rank <= 8);

constexpr std::int64_t packed_too_large = 255;  // in place of the rank

namespace detail {
constexpr op_attr no_extents_of_rank(const std::int64_t* e, int rank) {
  return {{0, 0, 0, 0, 0,
           rank >= packed_too_large                 ? packed_too_large - 1
           : rank <= max_rank && too_large(e, rank) ? packed_too_large
                                                    : rank}};
}
constexpr void put_packed(op_attr& a, int d, std::int64_t n, unsigned sizes) {
  a.v[d / 2] |= static_cast<std::int64_t>(static_cast<std::uint64_t>(n & 0xFFFFFFFF) << (d % 2 * 32));
  a.v[5] |= static_cast<std::int64_t>(std::uint64_t{sizes} << (32 + max_dyn_sizes * d));
  if ((n >> 32) == 0) return;
  a.v[4] = n >> 32;
  a.v[5] |= std::int64_t{d} << 16;
}
}  // namespace detail

constexpr op_attr pack_extents(const std::int64_t* e, int rank) {
  op_attr a = detail::no_extents_of_rank(e, rank);
  for (int d = 0; d < rank && a.v[5] != packed_too_large && rank <= max_rank; ++d)
    detail::put_packed(a, d, bound_of(e[d]), sizes_in(e[d]));
  return a;
}
// The extents of s, so that a reshape gives them to another view of the same elements.
constexpr op_attr pack_extents(const spec& s) {
  op_attr a = detail::no_extents_of_rank(s.extent, s.rank);
  for (int d = 0; d < s.rank && a.v[5] != packed_too_large; ++d) detail::put_packed(a, d, s.extent[d], dyn_sizes(s, d));
  return a;
}

// All elements in a row.
constexpr op_attr pack_extents(std::initializer_list<std::int64_t> extents) {
  return pack_extents(extents.begin(), static_cast<int>(extents.size()));
}
constexpr op_attr pack_extent(std::int64_t count) { return pack_extents(&count, 1); }

constexpr int packed_rank(const op_attr& a) { return static_cast<int>(a.v[5] & 255); }

constexpr unsigned packed_sizes(const op_attr& a, int d) {
  return static_cast<unsigned>(static_cast<std::uint64_t>(a.v[5]) >> (32 + max_dyn_sizes * d)) & 15U;
}
// Without its sizes: the bound of a run-time extent.
constexpr std::int64_t packed_bound(const op_attr& a, int d) {
  const std::int64_t low = static_cast<std::int64_t>((static_cast<std::uint64_t>(a.v[d / 2]) >> (d % 2 * 32)) & 0xFFFFFFFF);
  return ((a.v[5] >> 16) & 255) == d ? low | a.v[4] << 32 : low;
}
constexpr std::int64_t packed_extent(const op_attr& a, int d) {
  return spelled_extent(packed_bound(a, d), packed_sizes(a, d));
}

// Why packed_extent must not be asked.
constexpr problem packed_problem(const op_attr& a) {
  const int rank = packed_rank(a);
  return rank <= max_rank ? problem::none : rank == packed_too_large ? problem::tensor_too_large : problem::rank_too_large;
}

}  // namespace shardwise::inline v0_1
