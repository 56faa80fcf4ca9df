// SPDX-License-Identifier: Apache-2.0
// A rank's block lies as its tensor's strides say: row-major, or with the dims in another order, densely either way.
#include <shardwise/runtime/program/call.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace {

namespace sw = shardwise;

constexpr sw::spec images(std::int64_t c, bool channels_last) {
  const std::int32_t sizes[sw::max_axes] = {2, 1, 1, 1};
  sw::spec s = sw::empty_spec(sw::dtype::f32, 1, sizes, sw::device_kind::host);
  s.rank = 4;
  const std::int64_t extent[] = {4, c, 5, 6}, last[] = {c * 30, 1, c * 6, c};
  for (int d = 0; d < 4; ++d) s.extent[d] = extent[d];
  sw::make_contiguous(s);
  for (int d = 0; d < 4 && channels_last; ++d) s.stride[d] = last[d];
  return s;
}
constexpr bool lies(const sw::spec& s, std::int64_t n, std::int64_t c, std::int64_t h, std::int64_t w) {
  constexpr int origin[sw::max_axes]{};
  const sw::runtime::layout l = sw::runtime::local_layout(s, origin);
  return l.str[0] == n && l.str[1] == c && l.str[2] == h && l.str[3] == w;
}
constexpr sw::spec cut(sw::spec s, int dim) {
  s.place[0] = sw::shard_value(dim);
  return s;
}

static_assert(lies(images(3, false), 90, 30, 6, 1));
static_assert(lies(images(3, true), 90, 1, 18, 3));
static_assert(lies(images(1, true), 30, 1, 6, 1));            // one channel has the stride that channels-last ones have
static_assert(lies(cut(images(8, true), 1), 120, 1, 24, 4));  // of a block of channels, those that it has
static_assert(lies(cut(images(3, true), 0), 90, 1, 18, 3));
static_assert(lies(cut(images(3, true), 2), 54, 1, 18, 3));

}  // namespace
