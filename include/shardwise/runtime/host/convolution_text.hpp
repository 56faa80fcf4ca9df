// SPDX-License-Identifier: Apache-2.0
// How a block of four dims is stored, and a convolution in words: for libraries' tables and reports.
#pragma once

#include <string>

#include <shardwise/runtime/host/convolution_library.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::runtime {

// Strides of a dense block in either memory format.
constexpr void make_dense(const std::int64_t (&extent)[4], bool channels_last, std::int64_t (&stride)[4]) {
  constexpr int order[2][4] = {{3, 2, 1, 0}, {1, 3, 2, 0}};  // innermost first
  std::int64_t step = 1;
  for (const int d : order[channels_last ? 1 : 0]) {
    stride[d] = step;
    step *= extent[d];
  }
}

// The formats that a block is dense in: both where it has one channel or one place, neither where it is spread.
struct block_formats {
  bool contiguous = false, channels_last = false;

  constexpr block_formats(const std::int64_t (&extent)[4], const std::int64_t (&stride)[4])
      : contiguous(lies_so(extent, stride, false)), channels_last(lies_so(extent, stride, true)) {}
  constexpr bool is_channels_last_alone() const { return channels_last && !contiguous; }

 private:
  static constexpr bool lies_so(const std::int64_t (&extent)[4], const std::int64_t (&stride)[4], bool last) {
    std::int64_t dense[4] = {};
    make_dense(extent, last, dense);
    for (int d = 0; d < 4; ++d)
      if (extent[d] > 1 && stride[d] != dense[d]) return false;  // one element may have any stride
    return true;
  }
};

// "gradient of the image of float, image 2 3 16 16, kernel 64 3 7 7, stride 7 7, channels-last".
inline std::string text_of(const convolution_request& r) {
  const auto n = [](std::int64_t x) { return " " + std::to_string(x); };
  std::string s = r.pass == convolution_pass::forward          ? "forward"
                  : r.pass == convolution_pass::image_gradient ? "gradient of the image"
                                                               : "gradient of the weight";
  s += std::string(" of ") + name_of(r.type) + ", image" + n(r.n) + n(r.c) + n(r.h) + n(r.w) + ", kernel" + n(r.o) + n(r.i) +
       n(r.kh) + n(r.kw);
  if (r.stride[0] != 1 || r.stride[1] != 1) s += ", stride" + n(r.stride[0]) + n(r.stride[1]);
  if (r.before[0] + r.before[1] + r.behind[0] + r.behind[1] > 0)
    s += ", padding" + n(r.before[0]) + n(r.before[1]) + n(r.behind[0]) + n(r.behind[1]);
  if (r.dilation[0] != 1 || r.dilation[1] != 1) s += ", dilation" + n(r.dilation[0]) + n(r.dilation[1]);
  if (r.groups > 1) s += "," + n(r.groups) + " groups";
  const block_formats image({r.n, r.c, r.h, r.w}, r.image);
  if (!image.contiguous) s += image.channels_last ? ", channels-last" : ", spread";
  return s;
}

}  // namespace shardwise::inline v0_1::runtime
