// SPDX-License-Identifier: Apache-2.0
// Host matrix product through a CBLAS library, with the built-in one for strides that BLAS cannot say.
#pragma once

#ifndef SHARDWISE_WITH_BLAS
#error "runtime/host/cblas.hpp needs a CBLAS library: define SHARDWISE_WITH_BLAS and link one, or use runtime/host/gemm.hpp"
#endif

#include <cblas.h>

#include <shardwise/runtime/host/gemm.hpp>
#include <shardwise/support/config.hpp>

#include <climits>

// Each rank is one thread, so the library must run one: set OPENBLAS_NUM_THREADS=1 (or the like of MKL or BLIS) before
// the process starts; OpenBLAS has one pool per process, for which ranks would queue. What a library promises about
// equal bits is its own affair; the built-in product's law does not extend to it.
namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {
namespace cblas {

namespace cblas_detail {

// How BLAS would name an operand: unit columns, or the transpose of such; a leading dimension of 0 means that it
// cannot.
struct layout {
  CBLAS_TRANSPOSE transpose;
  long leading;
};

template <class T>
constexpr layout name_layout(matrix_view<T> x, long rows, long cols) {
  const auto leading = [](long stride, long count, long length) {
    // The distance between rows is free when there is one row, and BLAS still wants it to be a row's length.
    const long least = length > 1 ? length : 1;
    const long distance = count > 1 ? stride : least;
    return distance >= least && distance <= INT_MAX ? distance : 0L;
  };
  if (x.col == 1 || cols == 1) {
    if (const long distance = leading(x.row, rows, cols)) return {CblasNoTrans, distance};
  }
  if (x.row == 1 || rows == 1) return {CblasTrans, leading(x.col, cols, rows)};
  return {CblasNoTrans, 0};
}

}  // namespace cblas_detail

// The same as host::gemm, workspace included: the fallback needs it.
template <class T>
void gemm(long m, long n, long k, T alpha, matrix_view<const std::type_identity_t<T>> a,
          matrix_view<const std::type_identity_t<T>> b, std::type_identity_t<T> beta, matrix_view<std::type_identity_t<T>> c,
          void* workspace) {
  using namespace cblas_detail;
  const layout cl = name_layout(c, m, n);
  if (cl.leading > 0 && cl.transpose == CblasTrans) {  // C' = B' A' has unit columns
    gemm<T>(n, m, k, alpha, {b.data, b.col, b.row}, {a.data, a.col, a.row}, beta, {c.data, c.col, c.row}, workspace);
    return;
  }
  const layout al = name_layout(a, m, k), bl = name_layout(b, k, n);
  if (m <= 0 || n <= 0 || k <= 0 || m > INT_MAX || n > INT_MAX || k > INT_MAX || al.leading == 0 || bl.leading == 0 ||
      cl.leading == 0) {
    host::gemm<T>(m, n, k, alpha, a, b, beta, c, workspace);
    return;
  }
  const int rows = static_cast<int>(m), cols = static_cast<int>(n), depth = static_cast<int>(k);
  const int lda = static_cast<int>(al.leading), ldb = static_cast<int>(bl.leading), ldc = static_cast<int>(cl.leading);
  if constexpr (std::is_same_v<T, float>) {
    cblas_sgemm(CblasRowMajor, al.transpose, bl.transpose, rows, cols, depth, alpha, a.data, lda, b.data, ldb, beta, c.data,
                ldc);
  } else {
    static_assert(std::is_same_v<T, double>, "gemm computes in float or in double");
    cblas_dgemm(CblasRowMajor, al.transpose, bl.transpose, rows, cols, depth, alpha, a.data, lda, b.data, ldb, beta, c.data,
                ldc);
  }
}

}  // namespace cblas
}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
