// SPDX-License-Identifier: Apache-2.0
// The law of packed extents: what is packed comes back, or packed_problem says why not; equal extents are packed equally.

#include <shardwise/propagation/join.hpp>
#include <shardwise/propagation/view.hpp>

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::op_code;
using sw::problem;

constexpr bool comes_back(const std::int64_t* e, int rank) {
  const sw::op_attr a = sw::pack_extents(e, rank);
  bool same = sw::packed_problem(a) == problem::none && sw::packed_rank(a) == rank;
  for (int d = 0; same && d < rank; ++d) same = sw::packed_extent(a, d) == e[d];
  return same;
}
template <std::int64_t... E>
constexpr sw::op_attr packed() {
  const std::int64_t e[] = {E..., 0};
  return sw::pack_extents(e, static_cast<int>(sizeof...(E)));
}
template <std::int64_t... E>
constexpr bool kept() {
  const std::int64_t e[] = {E..., 0};
  return comes_back(e, static_cast<int>(sizeof...(E)));
}

static_assert(kept<>() && kept<0>() && kept<1>() && kept<-1>() && kept<7, 1, -3, 0, 2>());
static_assert(kept<1, 2, 3, 4, 5, 6, 7, 8>() && kept<0, 0, 0, 0, 0, 0, 0, 0>() && kept<-1, -2, -3, -4, -5, -6, -7, -8>());
static_assert(kept<2, 3, 2, 2, 2, 0, 1>() && kept<1, 1, 1, 1, 1, 1, 1, 0>());

// The edges of a half word and of the one large extent, at every dim, static and of run-time sizes, beside as much as a tensor may have.
constexpr bool large_ones() {
  const std::int64_t edges[] = {0x7FFFFFFF,
                                0x80000000,
                                0xFFFFFFFF,
                                std::int64_t{1} << 32,
                                (std::int64_t{1} << 32) + 1,
                                std::int64_t{0x123456789A},
                                std::int64_t{1} << 56,
                                std::int64_t{1} << 57};
  bool all = true;
  for (int rank = 1; rank <= sw::max_rank; ++rank)
    for (int d = 0; d < rank; ++d)
      for (const std::int64_t n : edges)
        for (const unsigned sizes : {0U, 1U, 2U, 9U, 15U}) {
          if (sizes != 0 && n > sw::max_dyn_extent) continue;
          std::int64_t e[sw::max_rank]{};
          std::int64_t left = (std::int64_t{1} << 57) / n;
          for (int k = 0; k < rank; ++k) {
            e[k] = k == d ? sw::spelled_extent(n, sizes) : left > 1 ? (left < 0x80000000 ? left : 0x80000000) : k % 3 - 1;
            if (k != d && left > 1) left /= sw::bound_of(e[k]);
          }
          all = all && comes_back(e, rank);
        }
  return all;
}
static_assert(large_ones());

// Every list of up to eight extents out of a few, by rank: no two lists are packed alike.
constexpr bool many() {
  std::uint64_t state = 5;
  const std::int64_t some[] = {0, 1, 2, 3, 64, sw::dyn<2>, sw::dyn<2, 3>, sw::extent_product(sw::dyn<8>, sw::dyn<4, 2>)};
  bool all = true;
  for (int rank = 0; rank <= sw::max_rank; ++rank)
    for (int k = 0; k < 200; ++k) {
      std::int64_t e[sw::max_rank]{}, f[sw::max_rank]{};
      bool differs = false;
      for (int d = 0; d < rank; ++d) {
        state = state * 6364136223846793005ULL + 1442695040888963407ULL;
        e[d] = some[(state >> 33) & 7];
        f[d] = some[(state >> 40) & 7];
        differs = differs || e[d] != f[d];
      }
      all = all && comes_back(e, rank) && (sw::pack_extents(e, rank) == sw::pack_extents(f, rank)) == !differs;
    }
  return all;
}
static_assert(many());

// What has no place says why: a ninth dim, and more elements than a tensor may have, two large extents among them.
static_assert(sw::packed_problem(packed<1, 1, 1, 1, 1, 1, 1, 1, 1>()) == problem::rank_too_large);
static_assert(sw::packed_rank(packed<1, 1, 1, 1, 1, 1, 1, 1, 1>()) == 9);
static_assert(sw::packed_problem(packed<4294967296, 0, 4294967296>()) == problem::tensor_too_large);
static_assert(sw::packed_problem(packed<4294967296, 65536, 1024>()) == problem::tensor_too_large);
static_assert(sw::packed_problem(packed<INT64_MIN>()) == problem::tensor_too_large &&
              sw::packed_problem(packed<INT64_MAX, 2>()) == problem::tensor_too_large);
static_assert(sw::packed_problem(packed<(1LL << 57)>()) == problem::none &&
              sw::packed_problem(packed<(1LL << 57) + 1>()) == problem::tensor_too_large);
constexpr sw::op_attr three_hundred = [] {
  std::int64_t e[300]{};
  return sw::pack_extents(e, 300);
}();
static_assert(sw::packed_problem(three_hundred) == problem::rank_too_large);

// A rule refuses what was not packed, and takes a spec's own extents for what they are.
using pair = sw::shape<1, 1>;
static_assert(refuses(apply(op_code::reshape, packed<1, 1, 1, 1, 1, 1, 1, 1, 1>(), on_line<pair>(R)),
                      problem::rank_too_large));
static_assert(refuses(apply(op_code::broadcast, packed<1, 1, 1, 1, 1, 1, 1, 1, 1>(), on_line<pair>(R)),
                      problem::rank_too_large));
static_assert(refuses(apply(op_code::reshape, packed<4294967296, 0, 4294967296>(), on_line<pair>(R)),
                      problem::tensor_too_large));
static_assert(refuses(apply(op_code::broadcast, packed<4294967296, 4294967296>(), on_line<pair>(R)),
                      problem::tensor_too_large));
using deep = sw::shape<2, -6, 1, 2, 3, 1, 2, 2>;
static_assert(apply(op_code::reshape, sw::pack_extents(on_line<deep>(S(1))), on_line<deep>(S(1))).out ==
              on_line<deep>(S(1)));
static_assert(apply(op_code::reshape, packed<2, -6, 24>(), on_line<deep>(S(1))).out == on_line<sw::shape<2, -6, 24>>(S(1)));
static_assert(apply(op_code::broadcast, packed<5, 1, 2, 1, 2, 3, 4, 2>(), on_line<sw::shape<1, 3, 1, 2>>(P)).out.rank == 8);

// Paddings are those of five neighbouring dims, from any dim on.
static_assert(apply(op_code::constant_pad, {{1, std::int64_t{2} << 32, 0, 0, 3, 2 << 1}},
                    on_line<sw::shape<2, 1, 3, 1, 2, 1, 1, 2>>(R))
                  .out == on_line<sw::shape<2, 1, 4, 3, 2, 1, 4, 2>>(R));

}  // namespace
