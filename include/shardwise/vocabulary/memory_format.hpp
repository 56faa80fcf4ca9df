// SPDX-License-Identifier: Apache-2.0
// memory_format: in which order a tensor's elements are stored, read from its strides and written into them.
#pragma once

#include <shardwise/vocabulary/spec.hpp>

namespace shardwise::inline v0_1 {

// How the elements of a tensor are stored, by PyTorch's names: the last dim fastest, or, of images (batch, channels, height, width),
// the channels of a pixel side by side. Every operation's result is contiguous; what else there is was asked for by
// contiguous<memory_format::channels_last>(x), or by the pass optimize_layout.
enum class memory_format : std::uint8_t { contiguous, channels_last };

// Law: dims of one element have the strides that the others leave them, as in PyTorch: (n, c, 1, 1) has strides (c, 1, c, c).
constexpr void make_channels_last(spec& s) {
  s.stride[1] = 1;
  s.stride[3] = s.extent[1];
  s.stride[2] = s.extent[3] * s.stride[3];
  s.stride[0] = s.extent[2] * s.stride[2];
  s.offset = 0;
}
constexpr bool is_channels_last(const spec& s) {
  return s.rank == 4 && s.offset == 0 && s.stride[1] == 1 && s.stride[3] == s.extent[1] &&
         s.stride[2] == s.extent[3] * s.stride[3] && s.stride[0] == s.extent[2] * s.stride[2];
}
// Four dims for channels_last.
constexpr spec in_format(spec s, memory_format format) {
  if (format == memory_format::channels_last) make_channels_last(s);
  else make_contiguous(s);
  return s;
}

// Of each dim how many are stored faster than it: (3, 2, 1, 0) of a contiguous tensor with four dims, (3, 0, 2, 1) of one that is
// channels-last. Of equal strides, which dims of one element may have, the last dim's is the fastest; `same_order` asks less.
struct dim_order {
  int faster[max_rank]{};
  int rank = 0;
  constexpr bool operator==(const dim_order&) const = default;
};
constexpr dim_order stride_order(const spec& s) {
  dim_order r;
  r.rank = s.rank;
  for (int d = 0; d < s.rank; ++d)
    for (int e = 0; e < s.rank; ++e)
      if (s.stride[e] < s.stride[d] || (s.stride[e] == s.stride[d] && e > d)) ++r.faster[d];
  return r;
}
// Whether two tensors of equal extents store their elements in one order, wherever dims of one element stand.
constexpr bool same_order(const spec& a, const spec& b) {
  for (int d = 0; d < a.rank; ++d)
    for (int e = 0; e < a.rank; ++e)
      if (a.extent[d] != 1 && a.extent[e] != 1 && (a.stride[d] < a.stride[e]) != (b.stride[d] < b.stride[e])) return false;
  return a.rank == b.rank;
}

}  // namespace shardwise::inline v0_1
