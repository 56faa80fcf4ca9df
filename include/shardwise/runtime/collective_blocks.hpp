// SPDX-License-Identifier: Apache-2.0
// What collectives of all host backends do to blocks: how two values combine, and layouts of parts of a block.
#pragma once

#include <shardwise/runtime/call.hpp>

namespace shardwise::runtime {

template <class T>
constexpr T combine(reduction op, T a, T b) {
  switch (op) {
    case reduction::product: return a * b;
    case reduction::max: return a > b ? a : b;
    case reduction::min: return a < b ? a : b;
    default: return a + b;
  }
}

inline layout flat_layout(std::int64_t n) {
  layout l;
  l.rank = 1;
  l.ext[0] = l.global[0] = n;
  l.str[0] = 1;
  return l;
}

// The layout of a dense block with dim d cut to `n`.
inline layout with_extent(layout l, int d, std::int64_t n) {
  l.ext[d] = n;
  l.make_dense();
  return l;
}

}  // namespace shardwise::runtime
