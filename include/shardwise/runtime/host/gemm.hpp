// SPDX-License-Identifier: Apache-2.0
// Host matrix product: one thread, one tile kernel per instruction set, chosen at run time, scratch from the caller.
#pragma once

#include <cstddef>
#include <type_traits>

#include <shardwise/operations/contraction/scratch.hpp>
#include <shardwise/runtime/host/gemm_pack.hpp>
#include <shardwise/support/config.hpp>

// The law. An element's bits depend on its row of A, its column of B, its old value, alpha, beta, k and the
// instruction set: every tile adds its products in order of k and every block of k begins where k alone says. Hence
// equal calls give equal bits, a row does not depend on m, a column does not depend on n, and strides do not matter:
// the product of a shard is the shard of the product. (On x86-64. Elsewhere the compiler decides what it fuses.)
namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

template <class T>
struct matrix_view {
  T* data;
  long row, col;  // strides in elements; zero repeats, so only where the matrix is read

  template <class U>
    requires(std::is_same_v<U, const T> && !std::is_const_v<T>)
  constexpr operator matrix_view<U>() const {
    return {data, row, col};
  }
};

namespace gemm_detail {

inline constexpr long max_rows = 12;  // the tallest tile of any instruction set
using namespace gemm_panels;

// Tiles that end inside a vector or land on strided columns go through a copy, by the same kernel: the same bits.
template <class T>
void tile_by_copy(tile_fn<T> kernel, long rows, long cols, long k, const T* a, long a_row, long a_col, const T* b,
                  long b_row, T alpha, T beta, bool keep, matrix_view<T> c) {
  constexpr long width = widest_bytes / long{sizeof(T)};
  alignas(64) T copy[static_cast<std::size_t>(max_rows * width)];
  if (keep) {
    for (long i = 0; i < rows; ++i) {
      for (long j = 0; j < width; ++j) copy[i * width + j] = j < cols ? c.data[i * c.row + j * c.col] : T{};
    }
  }
  kernel(k, a, a_row, a_col, b, b_row, alpha, beta, keep, copy, width);
  for (long i = 0; i < rows; ++i) {
    for (long j = 0; j < cols; ++j) c.data[i * c.row + j * c.col] = copy[i * width + j];
  }
}

template <class T>
void multiply(const tile_set<T>& set, long m, long n, long k, T alpha, matrix_view<const T> a, matrix_view<const T> b,
              T beta, matrix_view<T> c, T* workspace) {
  const long lanes = set.vector_bytes / long{sizeof(T)}, width = 2 * lanes, depth = depth_of(k);
  T* const b_space = workspace;
  T* const a_space = workspace + packed_b<T>(n, k);
  // The tiles read A through strides at full speed, except where a multiple of a page lies between its rows, or of half a
  // page between its columns: those share few cache sets, and a copy pays once enough tiles of columns reuse it. (20 to 30%,
  // but with tiles of twelve rows it may cost 2% where a set has twelve ways.) B in place pays while few rows reuse it, very
  // few of them where such strides lie between its rows.
  const auto apart = [](long stride, long bytes) { return stride != 0 && stride * long{sizeof(T)} % bytes == 0; };
  const bool copy_rows = n > 2 * width && a.col == 1 && apart(a.row, 4096);
  const bool copy_cols = n > 2 * width && a.row == 1 && apart(a.col, 2048);
  const bool direct_b = b.col == 1 && m <= (apart(b.row, 2048) ? 32 : 128);
  for (long j0 = 0; j0 < n; j0 += max_width<T>) {
    const long nb = smaller(n - j0, max_width<T>);
    for (long k0 = 0; k0 < k; k0 += depth) {
      const long kb = smaller(k - k0, depth);
      const T* const b_block = b.data + k0 * b.row + j0 * b.col;
      for (long j = 0; j < nb; j += width) {
        const long left = nb - j;
        if (direct_b && left >= width) continue;
        pack(set, b_block + j * b.col, b.row, b.col, kb, smaller(left, width), b_space + j * kb,
             left > lanes ? width : lanes);
      }
      const bool keep = k0 > 0 || beta != T{};
      const T factor = k0 > 0 ? T{1} : beta;
      for (long i0 = 0; i0 < m; i0 += max_height<T>) {
        const long mb = smaller(m - i0, max_height<T>);
        const T* const a_block = a.data + i0 * a.row + k0 * a.col;
        if (copy_rows) pack(set, a_block, a.row, 1, mb, kb, a_space, kb + row_gap);
        if (copy_cols) pack(set, a_block, a.col, 1, kb, mb, a_space, mb);
        const T* const a_from = copy_rows || copy_cols ? a_space : a_block;
        const long a_row = copy_rows ? kb + row_gap : a.row, a_col = copy_cols ? mb : a.col;
        for (long j = 0; j < nb; j += width) {
          const long left = nb - j;
          const bool whole = left >= width;
          const T* const b_tile = direct_b && whole ? b_block + j : b_space + j * kb;
          const long b_row = direct_b && whole ? b.row : left > lanes ? width : lanes;
          for (long i = 0; i < mb;) {
            const auto& height = set.fit(mb - i);
            const tile_fn<T> kernel = left > lanes ? height.wide : height.narrow;
            const T* const a_tile = a_from + i * a_row;
            T* const c_tile = c.data + (i0 + i) * c.row + (j0 + j) * c.col;
            if (c.col == 1 && (whole || left == lanes)) {
              kernel(kb, a_tile, a_row, a_col, b_tile, b_row, alpha, factor, keep, c_tile, c.row);
            } else {
              tile_by_copy<T>(kernel, height.rows, smaller(left, width), kb, a_tile, a_row, a_col, b_tile, b_row, alpha,
                              factor, keep, {c_tile, c.row, c.col});
            }
            i += height.rows;
          }
        }
      }
    }
  }
}

}  // namespace gemm_detail

// C = alpha * A B + beta * C for A [m, k], B [k, n]. C must not overlap A, B or the workspace and is not read when beta
// is zero. `workspace` is 64-byte aligned and has gemm_workspace_bytes<T>(m, n, k) bytes; it may be null when that is
// zero. `level` must be supported. alpha == 0 follows IEEE: a NaN in A or B reaches C.
template <class T>
void gemm(long m, long n, long k, T alpha, matrix_view<const std::type_identity_t<T>> a,
          matrix_view<const std::type_identity_t<T>> b, std::type_identity_t<T> beta, matrix_view<std::type_identity_t<T>> c,
          void* workspace, isa level) {
  static_assert(std::is_same_v<T, float> || std::is_same_v<T, double>, "gemm computes in float or in double");
  if (m <= 0 || n <= 0) return;
  if (k <= 0) {
    for (long i = 0; i < m; ++i) {
      for (long j = 0; j < n; ++j) {
        T& x = c.data[i * c.row + j * c.col];
        x = beta == T{} ? T{} : beta * x;
      }
    }
    return;
  }
  const auto& set = gemm_detail::tiles<T>(level);
  T* const space = static_cast<T*>(workspace);
  if (c.col != 1 && c.row == 1) {  // C' = B' A' has unit columns
    gemm_detail::multiply<T>(set, n, m, k, alpha, {b.data, b.col, b.row}, {a.data, a.col, a.row}, beta,
                             {c.data, c.col, c.row}, space);
  } else {
    gemm_detail::multiply<T>(set, m, n, k, alpha, a, b, beta, c, space);
  }
}

template <class T>
void gemm(long m, long n, long k, T alpha, matrix_view<const std::type_identity_t<T>> a,
          matrix_view<const std::type_identity_t<T>> b, std::type_identity_t<T> beta, matrix_view<std::type_identity_t<T>> c,
          void* workspace) {
  gemm<T>(m, n, k, alpha, a, b, beta, c, workspace, best_isa());
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
