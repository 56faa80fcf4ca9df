// SPDX-License-Identifier: Apache-2.0
// The host matrix product equals the triple loop exactly, on every instruction set, and stays inside its memory.
#include <shardwise/runtime/host/gemm.hpp>

#include <doctest/doctest.h>

#include <cstring>
#include <limits>
#include <new>
#include <utility>
#include <vector>

namespace {

namespace host = shardwise::host;
using host::isa;

constexpr isa levels[] = {isa::generic, isa::avx2, isa::avx512};
constexpr unsigned char canary = 0xA5;

// 64-byte aligned bytes, filled with the canary, with a guard on both sides of the middle.
class guarded {
 public:
  explicit guarded(std::size_t bytes) : bytes_(bytes), memory_(new(std::align_val_t{64}) unsigned char[bytes + 2 * guard]) {
    std::memset(memory_, canary, bytes + 2 * guard);
  }
  guarded(const guarded&) = delete;
  ~guarded() { ::operator delete[](memory_, std::align_val_t{64}); }

  void* data() const { return memory_ + guard; }
  bool intact() const {
    for (std::size_t i = 0; i < guard; ++i) {
      if (memory_[i] != canary || memory_[guard + bytes_ + i] != canary) return false;
    }
    return true;
  }

 private:
  static constexpr std::size_t guard = 4096;
  std::size_t bytes_;
  unsigned char* memory_;
};

// A matrix of small integers, whose products are exact, stored with the given strides; everything else is NaN.
template <class T>
struct matrix {
  matrix(long rows, long cols, long row_stride, long col_stride, unsigned seed)
      : row(row_stride),
        col(col_stride),
        values(static_cast<std::size_t>(1 + (rows > 0 ? rows - 1 : 0) * row_stride + (cols > 0 ? cols - 1 : 0) * col_stride),
               std::numeric_limits<T>::quiet_NaN()) {
    for (long i = 0; i < rows; ++i) {
      for (long j = 0; j < cols; ++j)
        (*this)(i, j) = static_cast<T>(static_cast<int>((seed = seed * 1664525u + 1013904223u) >> 28) - 8);
    }
  }

  T& operator()(long i, long j) { return values[static_cast<std::size_t>(i * row + j * col)]; }
  const T& operator()(long i, long j) const { return values[static_cast<std::size_t>(i * row + j * col)]; }
  host::matrix_view<const T> view() const { return {values.data(), row, col}; }

  long row, col;
  std::vector<T> values;
};

enum class order { rows, columns, padded_rows, padded_columns, both_strided };
constexpr order orders[] = {order::rows, order::columns, order::padded_rows, order::padded_columns, order::both_strided};

template <class T>
matrix<T> make(long rows, long cols, order o, unsigned seed) {
  switch (o) {
    case order::rows: return {rows, cols, cols, 1, seed};
    case order::columns: return {rows, cols, 1, rows, seed};
    case order::padded_rows: return {rows, cols, cols + 3, 1, seed};
    case order::padded_columns: return {rows, cols, 1, rows + 5, seed};
    case order::both_strided: break;
  }
  return {rows, cols, 2 * cols + 7, 2, seed};
}

template <class T>
bool equal_bits(const std::vector<T>& x, const std::vector<T>& y) {
  return x.size() == y.size() && (x.empty() || std::memcmp(x.data(), y.data(), x.size() * sizeof(T)) == 0);
}

template <class T>
void run(isa level, long m, long n, long k, T alpha, host::matrix_view<const T> a, host::matrix_view<const T> b, T beta,
         host::matrix_view<T> c) {
  const guarded workspace(host::gemm_workspace_bytes<T>(m, n, k));
  host::gemm(m, n, k, alpha, a, b, beta, c, workspace.data(), level);
  REQUIRE(workspace.intact());
}

// Compares every byte of C's storage, so what lies between and behind its elements is checked too.
template <class T>
void check(isa level, long m, long n, long k, order oa, order ob, order oc, T alpha, T beta) {
  CAPTURE(m);
  CAPTURE(n);
  CAPTURE(k);
  CAPTURE(static_cast<int>(level));
  CAPTURE(static_cast<int>(oa));
  CAPTURE(static_cast<int>(ob));
  CAPTURE(static_cast<int>(oc));
  CAPTURE(alpha);
  CAPTURE(beta);
  const auto a = make<T>(m, k, oa, 1), b = make<T>(k, n, ob, 2);
  auto expected = make<T>(m, n, oc, 3);
  auto c = expected;
  for (long i = 0; i < m; ++i) {
    for (long j = 0; j < n; ++j) {
      T sum{};
      for (long l = 0; l < k; ++l) sum += a(i, l) * b(l, j);
      expected(i, j) = beta == T{} ? alpha * sum : alpha * sum + beta * expected(i, j);
      if (beta == T{}) c(i, j) = std::numeric_limits<T>::quiet_NaN();
    }
  }
  // Adding +0 makes every zero positive: -0 and +0 are the same integer.
  run<T>(level, m, n, k, alpha, a.view(), b.view(), beta, {c.values.data(), c.row, c.col});
  for (T& x : c.values) x += T{};
  for (T& x : expected.values) x += T{};
  REQUIRE(equal_bits(c.values, expected.values));
}

}  // namespace

TEST_CASE_TEMPLATE("gemm equals the triple loop on awkward shapes", T, float, double) {
  constexpr long sizes[] = {0, 1, 2, 3, 5, 7, 13, 17, 31, 33, 64};
  for (const isa level : levels) {
    if (!host::supports(level)) continue;
    unsigned turn = 0;
    for (const long m : sizes) {
      for (const long n : sizes) {
        for (const long k : sizes) {
          const order oa = orders[turn % 5], ob = orders[turn / 5 % 5], oc = orders[turn / 25 % 5];
          const T alpha = turn % 3 == 0 ? T{1} : T{2}, beta = turn % 4 < 2 ? T{0} : turn % 4 == 2 ? T{1} : T{-3};
          check<T>(level, m, n, k, oa, ob, oc, alpha, beta);
          ++turn;
        }
      }
    }
  }
}

TEST_CASE_TEMPLATE("gemm equals the triple loop for every order of strides and every block edge", T, float, double) {
  constexpr long shapes[][3] = {{29, 41, 37}, {65, 129, 17}, {145, 7, 257}, {5, 515, 9}, {151, 33, 300}, {128, 32, 128}};
  for (const isa level : levels) {
    if (!host::supports(level)) continue;
    for (const auto& s : shapes) {
      for (const order oa : orders) {
        for (const order ob : orders) {
          for (const order oc : orders) check<T>(level, s[0], s[1], s[2], oa, ob, oc, T{1}, oc == order::rows ? T{0} : T{2});
        }
      }
    }
    check<T>(level, 300, 530, 530, order::rows, order::columns, order::rows, T{1}, T{0});
    // Rows a page apart are packed where many columns reuse them.
    check<T>(level, 30, 90, 1024, order::rows, order::rows, order::rows, T{1}, T{0});
    check<T>(level, 1024, 90, 30, order::columns, order::columns, order::rows, T{1}, T{1});
    check<T>(level, 530, 300, 515, order::columns, order::rows, order::columns, T{1}, T{1});
  }
}

TEST_CASE_TEMPLATE("gemm reads operands that repeat through zero strides", T, float, double) {
  const T one[] = {3}, column[] = {1, 2, 3, 4, 5, 6, 7};
  for (const isa level : levels) {
    if (!host::supports(level)) continue;
    for (const long n : {1L, 20L, 90L}) {
      std::vector<T> c(static_cast<std::size_t>(7 * n), T{1});
      run<T>(level, 7, n, 50, T{1}, {column, 1, 0}, {one, 0, 0}, T{1}, {c.data(), n, 1});
      for (long i = 0; i < 7; ++i) {
        for (long j = 0; j < n; ++j) REQUIRE(c[static_cast<std::size_t>(i * n + j)] == static_cast<T>(150 * (i + 1) + 1));
      }
    }
  }
}

TEST_CASE_TEMPLATE("the product of a shard is the shard of the product, bit for bit", T, float, double) {
  const long m = 157, n = 83, k = 517;
  matrix<T> a(m, k, k, 1, 1), b(k, n, n, 1, 2), c0(m, n, n, 1, 3), a_columns(m, k, 1, m, 1), b_columns(k, n, 1, k, 2);
  for (T& x : a.values) x = x / T{7} + T{1} / T{3};
  for (T& x : b.values) x = x / T{11} - T{1} / T{5};
  for (long l = 0; l < k; ++l) {
    for (long i = 0; i < m; ++i) a_columns(i, l) = a(i, l);
    for (long j = 0; j < n; ++j) b_columns(l, j) = b(l, j);
  }
  const T alpha = T{1} / T{3}, beta = T{2} / T{7};
  for (const isa level : levels) {
    if (!host::supports(level)) continue;
    auto whole = c0.values;
    run<T>(level, m, n, k, alpha, a.view(), b.view(), beta, {whole.data(), n, 1});

    for (const auto& [av, bv] : {std::pair{a.view(), b_columns.view()}, std::pair{a_columns.view(), b.view()},
                                 std::pair{a_columns.view(), b_columns.view()}}) {
      auto c = c0.values;
      run<T>(level, m, n, k, alpha, av, bv, beta, {c.data(), n, 1});
      CHECK(equal_bits(c, whole));
    }

    std::vector<T> transposed(whole.size());
    for (long i = 0; i < m; ++i) {
      for (long j = 0; j < n; ++j) transposed[static_cast<std::size_t>(j * m + i)] = c0(i, j);
    }
    run<T>(level, m, n, k, alpha, a.view(), b.view(), beta, {transposed.data(), 1, m});
    bool same = true;
    for (long i = 0; i < m; ++i) {
      for (long j = 0; j < n; ++j) {
        same &= std::memcmp(&transposed[static_cast<std::size_t>(j * m + i)], &whole[static_cast<std::size_t>(i * n + j)],
                            sizeof(T)) == 0;
      }
    }
    CHECK(same);

    for (const long part : {1L, 6L, 11L, 40L, 150L}) {
      auto by_rows = c0.values, by_columns = c0.values;
      for (long i = 0; i < m; i += part) {
        const long rows = i + part < m ? part : m - i;
        run<T>(level, rows, n, k, alpha, {&a(i, 0), k, 1}, b.view(), beta, {by_rows.data() + i * n, n, 1});
      }
      for (long j = 0; j < n; j += part) {
        const long cols = j + part < n ? part : n - j;
        run<T>(level, m, cols, k, alpha, a.view(), {&b(0, j), n, 1}, beta, {by_columns.data() + j, n, 1});
      }
      CHECK(equal_bits(by_rows, whole));
      CHECK(equal_bits(by_columns, whole));
    }
  }
}

TEST_CASE("the workspace is a constant and empty products need none") {
  static_assert(host::gemm_workspace_bytes<float>(0, 5, 5) == 0);
  static_assert(host::gemm_workspace_bytes<float>(5, 5, 0) == 0);
  static_assert(host::gemm_workspace_bytes<double>(1, 1, 1) > 0);
  static_assert(host::gemm_workspace_bytes<float>(1 << 20, 1 << 20, 1 << 20) <= 5 << 18);
  // A rank whose block is smaller than the largest one is given what that one needs.
  for (long k = 1; k < 2100; ++k) {
    CHECK(host::gemm_workspace_bytes<float>(40, 300, k) >= host::gemm_workspace_bytes<float>(40, 300, k - 1));
    CHECK(host::gemm_workspace_bytes<double>(40, 300, k) >= host::gemm_workspace_bytes<double>(40, 300, k - 1));
    CHECK(host::gemm_workspace_bytes<double>(k, 300, 40) >= host::gemm_workspace_bytes<double>(k - 1, 300, 40));
  }
  static_assert(host::gemm_workspace_bytes<float>(40, 300, 70) == host::gemm_workspace_bytes<float>(300, 40, 70));
  float c[] = {2, 2};
  host::gemm(1, 2, 0, 1.0f, {nullptr, 0, 1}, {nullptr, 2, 1}, 3.0f, {c, 2, 1}, nullptr);
  CHECK(c[0] == 6);
  host::gemm(0, 2, 1, 1.0f, {nullptr, 0, 1}, {nullptr, 2, 1}, 3.0f, {c, 2, 1}, nullptr);
  CHECK(c[0] == 6);
}
