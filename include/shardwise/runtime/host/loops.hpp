// SPDX-License-Identifier: Apache-2.0
// Loops over local blocks: broadcasting, merging of dims, rows; usable in constants, which is how rules are proved.
#pragma once

#include <shardwise/runtime/program/call.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

using runtime::layout;

// Up to four operands walked together: extents of the walk and each operand's strides (0 where broadcast).
template <int K>
struct walk {
  int rank = 0;
  std::int64_t ext[max_rank + 1]{};
  std::int64_t str[K][max_rank + 1]{};

  constexpr void push(std::int64_t e, const std::int64_t* s) {
    ext[rank] = e;
    for (int k = 0; k < K; ++k) str[k][rank] = s[k];
    ++rank;
  }

  // Neighbouring dims that every operand steps through as one become one.
  constexpr void merge() {
    std::int64_t one[K]{};  // strides of the last dim, which stays where no dim has more than one element
    for (int k = 0; k < K; ++k) one[k] = rank > 0 ? str[k][rank - 1] : 0;
    int to = 0;
    for (int d = 0; d < rank; ++d) {
      if (ext[d] == 1) continue;
      bool joins = to > 0;
      for (int k = 0; k < K; ++k) joins = joins && str[k][to - 1] == str[k][d] * ext[d];
      if (joins) {
        ext[to - 1] *= ext[d];
      } else {
        ext[to++] = ext[d];
      }
      for (int k = 0; k < K; ++k) str[k][to - 1] = str[k][d];
    }
    rank = to;
    if (rank == 0) push(1, one);
  }

  // f(offsets, count, strides) for every innermost run.
  template <class F>
  constexpr void each_run(F&& f) const {
    for (int d = 0; d < rank; ++d)
      if (ext[d] == 0) return;
    const int last = rank - 1;
    std::int64_t at[max_rank + 1]{};
    std::int64_t off[K]{};
    std::int64_t inner[K]{};
    for (int k = 0; k < K; ++k) inner[k] = str[k][last];
    for (;;) {
      f(off, ext[last], inner);
      int d = last - 1;
      for (; d >= 0; --d) {
        ++at[d];
        for (int k = 0; k < K; ++k) off[k] += str[k][d];
        if (at[d] < ext[d]) break;
        for (int k = 0; k < K; ++k) off[k] -= str[k][d] * ext[d];
        at[d] = 0;
      }
      if (d < 0) return;
    }
  }
};

// The stride with which operand `x` follows dim d of a result of rank `rank` and global extents `global`.
constexpr std::int64_t broadcast_stride(const layout& x, int rank, int d, const std::int64_t* global) {
  const int own = d - (rank - x.rank);
  return own < 0 || (x.global[own] == 1 && global[d] != 1) ? 0 : x.str[own];
}

// Whether a block of four dims steps through its channels, dim 1, faster than through its columns.
constexpr bool has_channels_inside(const layout& x) { return x.rank == 4 && x.str[1] < x.str[3]; }
// The dims of a block in the order in which it lies, from the outermost on: dim number i of them.
constexpr int stored_dim(const layout& x, int i) { return has_channels_inside(x) && i > 0 ? (i == 3 ? 1 : i + 1) : i; }

// Walk of the result (operand 0) and K-1 operands broadcast to it, along the order in which a result that is channels-last lies.
template <int K>
constexpr walk<K> broadcast_walk(const layout& out, const layout* const (&in)[K - 1]) {
  walk<K> w;
  for (int i = 0; i < out.rank; ++i) {
    const int d = stored_dim(out, i);
    std::int64_t s[K]{};
    s[0] = out.str[d];
    for (int k = 1; k < K; ++k) s[k] = broadcast_stride(*in[k - 1], out.rank, d, out.global);
    w.push(out.ext[d], s);
  }
  w.merge();
  return w;
}

// Offsets of every element, one by one.
template <int K, class F>
constexpr void each_offset(const walk<K>& w, F&& f) {
  if (w.rank == 0) {
    const std::int64_t zero[K]{};
    f(zero);
    return;
  }
  w.each_run([&](const std::int64_t* off, std::int64_t count, const std::int64_t* by) {
    std::int64_t at[K]{};
    for (int k = 0; k < K; ++k) at[k] = off[k];
    for (std::int64_t i = 0; i < count; ++i) {
      f(at);
      for (int k = 0; k < K; ++k) at[k] += by[k];
    }
  });
}

// Offsets of the rows (all dims but the last) of K operands with the same leading extents; operand ranks may differ by
// the last dim only.
template <int K, class F>
constexpr void each_row(const layout* const (&x)[K], int leading, F&& f) {
  walk<K> w;
  for (int d = 0; d < leading; ++d) {
    std::int64_t s[K]{};
    for (int k = 0; k < K; ++k) s[k] = x[k]->str[d];
    w.push(x[0]->ext[d], s);
  }
  w.merge();
  each_offset(w, f);
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
