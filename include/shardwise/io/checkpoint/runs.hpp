// SPDX-License-Identifier: Apache-2.0
// Runs of a tensor's row-major elements, which is what a rank holds of a parameter in a flat group, as boxes of the tensor.
#pragma once

#include <cstddef>
#include <cstdint>

#include <shardwise/io/checkpoint/index.hpp>
#include <shardwise/runtime/program/call.hpp>

namespace shardwise::inline v0_1::storage {

// f(box, at): boxes, of as many dims as `shape`, that are elements first..first + count - 1 one after the other; `at` of these lie
// before each. At most 2 dims - 1 boxes: rows that are whole are one.
template <class F>
void each_box(const extents& shape, std::int64_t first, std::int64_t count, const F& f) {
  const std::size_t dims = shape.size();
  extents stride(dims, 1);
  for (std::size_t d = dims; d-- > 1;) stride[d - 1] = stride[d] * shape[d];
  for (std::int64_t at = 0; at < count;) {
    const std::int64_t here = first + at;
    std::size_t d = 0;  // the outermost dim along which whole slices begin here
    while (d + 1 < dims && (here % stride[d] != 0 || count - at < stride[d])) ++d;
    runtime::layout box;
    box.rank = static_cast<std::int32_t>(dims);
    std::int64_t size = 1;
    for (std::size_t k = 0; k < dims; ++k) {
      const std::int64_t coordinate = here / stride[k] % shape[k], left = shape[k] - coordinate,
                         asked = (count - at) / stride[k];
      box.origin[k] = coordinate;
      box.ext[k] = k < d ? 1 : k > d ? shape[k] : asked < left ? asked : left;
      box.global[k] = shape[k];
      size *= box.ext[k];
    }
    box.make_dense();
    f(box, at);
    at += size;
  }
}

}  // namespace shardwise::inline v0_1::storage
