// SPDX-License-Identifier: Apache-2.0
// Where shards draw under random_policy::by_offset: PyTorch's offsets, and its collisions.
#include <shardwise/runtime/program/random_stream.hpp>

#include "rules.hpp"

namespace {

using namespace rules_test;
using sw::runtime::ceil4;
using sw::runtime::shard_offset;

template <int N>
struct ranks : sw::axis<N> {};

template <int N, class Shape>
constexpr bool begin_at(sw::placement p, const std::int64_t (&want)[N]) {
  const sw::spec s = on_line<Shape, float, ranks<N>>(p);
  for (int r = 0; r < N; ++r)
    if (shard_offset(s, &r) != want[r]) return false;
  return true;
}
static_assert(ceil4(0) == 0 && ceil4(1) == 4 && ceil4(4) == 4 && ceil4(5) == 8);
static_assert(begin_at<4, sw::shape<4, 4>>(S(0), {0, 4, 8, 12}));
static_assert(begin_at<4, sw::shape<4, 4>>(R, {0, 0, 0, 0}) && begin_at<4, sw::shape<4, 4>>(U, {0, 0, 0, 0}));
// shards of fewer than 4 elements: ranks 1 and 2 draw the same numbers
static_assert(begin_at<4, sw::shape<8>>(S(0), {0, 4, 4, 8}) && begin_at<4, sw::shape<5>>(S(0), {0, 4, 4, 8}));
// a full shard counts, also before a short or empty one: 6 over 4 are 2, 2, 2, 0
static_assert(begin_at<4, sw::shape<6, 2>>(S(0), {0, 4, 8, 12}));

struct rows : sw::axis<2> {};
struct cols : sw::axis<2> {};
constexpr std::int64_t on_grid(sw::placement p, sw::placement q, int r, int c) {
  sw::spec s = sw::spec_of<float, sw::shape<4, 4>, sw::mesh<rows, cols>>::value;
  s.place[0] = p;
  s.place[1] = q;
  const int at[] = {r, c};
  return shard_offset(s, at);
}
static_assert(on_grid(S(0), S(1), 0, 1) == 4 && on_grid(S(0), S(1), 1, 0) == 8 && on_grid(S(0), S(1), 1, 1) == 12);
static_assert(on_grid(S(1), S(0), 0, 1) == 8 && on_grid(S(1), S(0), 1, 0) == 4);  // tensor dims lead, not mesh axes
static_assert(on_grid(S(0), S(0), 1, 0) == 8 && on_grid(S(0), S(0), 0, 1) == 4);  // nested: in axis order
static_assert(on_grid(S(0), R, 1, 0) == 8 && on_grid(S(0), R, 1, 1) == 8);

}  // namespace
