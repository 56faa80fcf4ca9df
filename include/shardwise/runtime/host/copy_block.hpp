// SPDX-License-Identifier: Apache-2.0
// copy_block: elements of one block to another, as they lie in memory. Between orders of the dims (transposes, memory formats) by tiles.
#pragma once

#include <type_traits>

#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace tiles {

// o[i across + j] = x[i + j apart] of `wide` by `high` elements: of no four bytes, or at an edge.
template <class T>
void copy_plainly(const T* x, std::int64_t apart, T* o, std::int64_t across, std::int64_t wide, std::int64_t high) {
  for (std::int64_t i = 0; i < wide; ++i)
    for (std::int64_t j = 0; j < high; ++j) o[i * across + j] = x[i + j * apart];
}
// Few columns, as the channels of an image: N of them, in one walk along what is read.
template <int N, class T>
void copy_columns(const T* x, std::int64_t apart, T* o, std::int64_t across, std::int64_t wide) {
  for (std::int64_t i = 0; i < wide; ++i)
    for (int j = 0; j < N; ++j) o[i * across + j] = x[i + j * apart];
}
// Few rows, likewise.
template <int N, class T>
void copy_rows(const T* x, std::int64_t apart, T* o, std::int64_t across, std::int64_t high) {
  for (std::int64_t j = 0; j < high; ++j)
    for (int i = 0; i < N; ++i) o[i * across + j] = x[i + j * apart];
}

inline constexpr std::int64_t side = 16;  // a cache line of floats

// Four by four elements of four bytes, in vectors of the compiler's (<xmmintrin.h> would cost the umbrella header 2 % of clang's work).
template <class T>
void copy_four(const T* x, std::int64_t apart, T* o, std::int64_t across) {
  typedef float row __attribute__((vector_size(16)));
  row x0, x1, x2, x3;
  __builtin_memcpy(&x0, x, 16);
  __builtin_memcpy(&x1, x + apart, 16);
  __builtin_memcpy(&x2, x + 2 * apart, 16);
  __builtin_memcpy(&x3, x + 3 * apart, 16);
  const row a = __builtin_shufflevector(x0, x1, 0, 4, 1, 5), b = __builtin_shufflevector(x2, x3, 0, 4, 1, 5),
            c = __builtin_shufflevector(x0, x1, 2, 6, 3, 7), d = __builtin_shufflevector(x2, x3, 2, 6, 3, 7);
  x0 = __builtin_shufflevector(a, b, 0, 1, 4, 5);
  x1 = __builtin_shufflevector(a, b, 2, 3, 6, 7);
  x2 = __builtin_shufflevector(c, d, 0, 1, 4, 5);
  x3 = __builtin_shufflevector(c, d, 2, 3, 6, 7);
  __builtin_memcpy(o, &x0, 16);
  __builtin_memcpy(o + across, &x1, 16);
  __builtin_memcpy(o + 2 * across, &x2, 16);
  __builtin_memcpy(o + 3 * across, &x3, 16);
}
template <class T>
void copy_tile(const T* x, std::int64_t apart, T* o, std::int64_t across) {
  if constexpr (sizeof(T) == 4) {
    for (std::int64_t i = 0; i < side; i += 4)
      for (std::int64_t j = 0; j < side; j += 4) copy_four(x + i + j * apart, apart, o + i * across + j, across);
  } else {
    copy_plainly(x, apart, o, across, side, side);
  }
}

// Of an edge what fours of both extents hold, and the rest by elements.
template <class T>
void copy_edge(const T* x, std::int64_t apart, T* o, std::int64_t across, std::int64_t wide, std::int64_t high) {
  if constexpr (sizeof(T) == 4) {
    const std::int64_t w = wide / 4 * 4, h = high / 4 * 4;
    for (std::int64_t i = 0; i < w; i += 4)
      for (std::int64_t j = 0; j < h; j += 4) copy_four(x + i + j * apart, apart, o + i * across + j, across);
    copy_plainly(x + h * apart, apart, o + h, across, w, high - h);
    copy_plainly(x + w, apart, o + w * across, across, wide - w, high);
  } else {
    copy_plainly(x, apart, o, across, wide, high);
  }
}

// The same of any extents. Law: every line of what is read and of what is written is used whole while it is near.
template <class T>
void copy(const T* x, std::int64_t apart, T* o, std::int64_t across, std::int64_t wide, std::int64_t high) {
  if (high == 2) return copy_columns<2>(x, apart, o, across, wide);
  if (high == 3) return copy_columns<3>(x, apart, o, across, wide);
  if (high == 4) return copy_columns<4>(x, apart, o, across, wide);
  if (wide == 2) return copy_rows<2>(x, apart, o, across, high);
  if (wide == 3) return copy_rows<3>(x, apart, o, across, high);
  if (wide == 4) return copy_rows<4>(x, apart, o, across, high);
  for (std::int64_t i = 0; i < wide; i += side)
    for (std::int64_t j = 0; j < high; j += side) {
      const std::int64_t w = wide - i < side ? wide - i : side, h = high - j < side ? high - j : side;
      if (w == side && h == side) copy_tile(x + i + j * apart, apart, o + i * across + j, across);
      else copy_edge(x + i + j * apart, apart, o + i * across + j, across, w, h);
    }
}

}  // namespace tiles

// Copies what a walk of the output and the input, in this order, steps through.
template <class T>
constexpr void copy_walk(walk<2> w, const T* x, T* o) {
  const int last = w.rank - 1;
  if (!std::is_constant_evaluated() && last > 0 && w.str[0][last] == 1 && w.str[1][last] != 1) {
    int side_by_side = last - 1;  // the dim along which the input's elements are neighbours
    while (side_by_side >= 0 && w.str[1][side_by_side] != 1) --side_by_side;
    if (side_by_side >= 0) {
      const std::int64_t wide = w.ext[side_by_side], high = w.ext[last], across = w.str[0][side_by_side],
                         apart = w.str[1][last];
      w.ext[side_by_side] = w.ext[last] = 1;
      return w.each_run([&](const std::int64_t* off, std::int64_t, const std::int64_t*) {
        tiles::copy(x + off[1], apart, o + off[0], across, wide, high);
      });
    }
  }
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    if (s[0] == 1 && s[1] == 1) {
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) o[off[0] + i] = x[off[1] + i];
    } else {
      for (std::int64_t i = 0; i < n; ++i) o[off[0] + i * s[0]] = x[off[1] + i * s[1]];
    }
  });
}

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
  copy_walk<T>(w, x, o);
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
