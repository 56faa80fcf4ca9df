// SPDX-License-Identifier: Apache-2.0
// copy_block: elements of one block to another, as they lie in memory.
#pragma once

#include <shardwise/support/config.hpp>
#include <shardwise/runtime/host/kernel.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// Copies the block of `x` that begins at x_begin into that of `o` beginning at o_begin, `ext` elements a dim.
template <class T>
constexpr void copy_block(const T* x, const layout& lx, const std::int64_t* x_begin, T* o, const layout& lo,
                          const std::int64_t* o_begin, const std::int64_t* ext) {
  for (int d = 0; d < lx.rank; ++d)
    if (ext[d] == 0) return;  // an empty block has no place that a pointer may name
  walk<2> w;
  for (int d = 0; d < lx.rank; ++d) {
    const std::int64_t s[2] = {lo.str[d], lx.str[d]};
    w.push(ext[d], s);
    x += x_begin[d] * lx.str[d];
    o += o_begin[d] * lo.str[d];
  }
  w.merge();
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    if (s[0] == 1 && s[1] == 1) {
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) o[off[0] + i] = x[off[1] + i];
    } else {
      for (std::int64_t i = 0; i < n; ++i) o[off[0] + i * s[0]] = x[off[1] + i * s[1]];
    }
  });
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
