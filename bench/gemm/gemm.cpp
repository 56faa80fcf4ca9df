// SPDX-License-Identifier: Apache-2.0
// Times the built-in matrix product beside oneDNN's or a BLAS library's, turn by turn in one process; prints one JSON line per
// figure.
#include <shardwise/runtime/host/gemm.hpp>

#include <time.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <new>
#include <string>
#include <vector>

// Define SHARDWISE_BENCH_ONEDNN and link dnnl to compare; run with OMP_NUM_THREADS=1, one thread against one.
#if defined(SHARDWISE_BENCH_ONEDNN) && __has_include(<dnnl.h>)
#include <dnnl.h>
#define SHARDWISE_BENCH_RIVAL 1
#elif defined(SHARDWISE_BENCH_BLAS)
// Any library that has BLAS's own names: link openblas (OPENBLAS_NUM_THREADS=1), or PyTorch's libtorch_cpu.so, which has MKL's
// (MKL_NUM_THREADS=1).
extern "C" void sgemm_(const char*, const char*, const int*, const int*, const int*, const float*, const float*, const int*,
                       const float*, const int*, const float*, float*, const int*);
extern "C" void dgemm_(const char*, const char*, const int*, const int*, const int*, const double*, const double*,
                       const int*, const double*, const int*, const double*, double*, const int*);
#define SHARDWISE_BENCH_RIVAL 1
#else
#define SHARDWISE_BENCH_RIVAL 0
#endif

namespace {

namespace host = shardwise::host;

// Row-major operands; "t" stores the operand transposed. A zero leading dimension means dense.
struct product {
  const char* name;
  long m, n, k;
  bool a_transposed, b_transposed;
  long lda = 0, ldb = 0, ldc = 0;
};

constexpr product products[] = {
    {"square", 64, 64, 64, false, false},
    {"square", 128, 128, 128, false, false},
    {"square", 256, 256, 256, false, false},
    {"square", 512, 512, 512, false, false},
    {"square", 1024, 1024, 1024, false, false},
    {"square x W'", 512, 512, 512, false, true},
    {"square x W'", 1024, 1024, 1024, false, true},
    {"square dY' X", 512, 512, 512, true, false},
    {"square dY' X", 1024, 1024, 1024, true, false},
    {"forward x W'", 1024, 128, 128, false, true},
    {"forward x W'", 1024, 512, 128, false, true},
    {"forward x W'", 1024, 128, 512, false, true},
    {"forward x W'", 1024, 384, 128, false, true},
    {"forward x W'", 128, 128, 128, false, true},
    {"forward x W", 1024, 128, 128, false, false},
    {"forward x W", 1024, 512, 128, false, false},
    {"forward x W", 1024, 128, 512, false, false},
    {"grad dY W", 1024, 128, 128, false, false},
    {"grad dY W", 1024, 128, 512, false, false},
    {"grad dY W", 1024, 512, 128, false, false},
    {"grad dY W'", 1024, 128, 512, false, true},
    {"grad dY' X", 128, 128, 1024, true, false},
    {"grad dY' X", 512, 128, 1024, true, false},
    {"grad dY' X", 128, 512, 1024, true, false},
    {"grad dY' X", 384, 128, 1024, true, false},
    {"forward x W' of the example", 2048, 512, 128, false, true},
    {"forward x W' of the example", 2048, 128, 512, false, true},
    {"grad dY W of the example", 2048, 128, 512, false, false},
    {"grad dY' X of the example", 128, 128, 2048, true, false},
    {"grad dY' X of the example", 512, 128, 2048, true, false},
    {"grad dY' X of the example", 128, 512, 2048, true, false},
    {"grad dY' X of the example", 256, 128, 2048, true, false},
    {"q k'", 128, 128, 32, false, true},
    {"p v", 128, 32, 128, false, false},
    {"dO v'", 128, 128, 32, false, true},
    {"p' dO", 128, 32, 128, true, false},
    {"ds k", 128, 32, 128, false, false},
    {"ds' q", 128, 32, 128, true, false},
    {"q k' of fused heads", 128, 128, 32, false, true, 384, 384, 128},
    {"p v of fused heads", 128, 32, 128, false, false, 128, 384, 128},
    {"p' dO of fused heads", 128, 32, 128, true, false, 128, 128, 384},
    {"small", 16, 128, 128, false, true},
    {"small", 128, 16, 128, false, true},
    {"small", 64, 64, 16, false, true},
    {"odd", 129, 131, 127, false, false},
    {"odd", 129, 131, 127, false, true},
    {"odd", 129, 131, 127, true, false},
};

// Of this thread's processor, which other programs disturb less than the wall's.
double now() {
  timespec t{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
  return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
}

template <class F>
double seconds(long calls, F&& f) {
  const double start = now();
  for (long i = 0; i < calls; ++i) f();
  return (now() - start) / static_cast<double>(calls);
}

double median(std::vector<double> x) {
  std::nth_element(x.begin(), x.begin() + static_cast<long>(x.size() / 2), x.end());
  return x[x.size() / 2];
}

template <class T>
std::vector<T> numbers(long count) {
  std::vector<T> x(static_cast<std::size_t>(count));
  unsigned state = 1;
  for (T& v : x) v = static_cast<T>(static_cast<int>((state = state * 1664525u + 1013904223u) >> 24) - 128) / T{64};
  return x;
}

#if defined(SHARDWISE_BENCH_BLAS)
[[maybe_unused]] constexpr bool rival_has_doubles = true;
#else
[[maybe_unused]] constexpr bool rival_has_doubles = false;
#endif

template <class T>
void report(const product& p, int repetitions) {
  const long lda = p.lda ? p.lda : p.a_transposed ? p.m : p.k;
  const long ldb = p.ldb ? p.ldb : p.b_transposed ? p.k : p.n;
  const long ldc = p.ldc ? p.ldc : p.n;
  const auto a = numbers<T>(lda * (p.a_transposed ? p.k : p.m)), b = numbers<T>(ldb * (p.b_transposed ? p.n : p.k));
  auto c = numbers<T>(ldc * p.m), reference = c;
  void* const workspace = ::operator new(host::gemm_workspace_bytes<T>(p.m, p.n, p.k) + 64, std::align_val_t{64});
  const auto ours = [&] {
    host::gemm(p.m, p.n, p.k, T{1}, {a.data(), p.a_transposed ? 1 : lda, p.a_transposed ? lda : 1},
               {b.data(), p.b_transposed ? 1 : ldb, p.b_transposed ? ldb : 1}, T{0}, {c.data(), ldc, 1}, workspace);
  };
  const double flops = 2.0 * static_cast<double>(p.m) * static_cast<double>(p.n) * static_cast<double>(p.k);
  const long calls = std::max(1L, static_cast<long>(2e8 / flops));
  std::vector<double> our_times, their_times;
  seconds(calls, ours);
#if SHARDWISE_BENCH_RIVAL
  const auto theirs = [&] {
#if defined(SHARDWISE_BENCH_BLAS)  // by columns: C' = B' A'
    const int m = static_cast<int>(p.m), n = static_cast<int>(p.n), k = static_cast<int>(p.k);
    const int a_row = static_cast<int>(lda), b_row = static_cast<int>(ldb), c_row = static_cast<int>(ldc);
    const T one = 1, zero = 0;
    const char *const ta = p.a_transposed ? "T" : "N", *const tb = p.b_transposed ? "T" : "N";
    if constexpr (sizeof(T) == 4)
      sgemm_(tb, ta, &n, &m, &k, &one, b.data(), &b_row, a.data(), &a_row, &zero, reference.data(), &c_row);
    else dgemm_(tb, ta, &n, &m, &k, &one, b.data(), &b_row, a.data(), &a_row, &zero, reference.data(), &c_row);
#else
    if constexpr (sizeof(T) == 4) {
      dnnl_sgemm(p.a_transposed ? 'T' : 'N', p.b_transposed ? 'T' : 'N', p.m, p.n, p.k, 1.0f, a.data(), lda, b.data(), ldb,
                 0.0f, reference.data(), ldc);
    }
#endif
  };
  seconds(calls, theirs);
#endif
  for (int i = 0; i < repetitions; ++i) {
    our_times.push_back(seconds(calls, ours));
#if SHARDWISE_BENCH_RIVAL
    if (sizeof(T) == 4 || rival_has_doubles) their_times.push_back(seconds(calls, theirs));
#endif
  }
  ::operator delete(workspace, std::align_val_t{64});
  const double speed = flops / median(our_times) / 1e9;
  std::printf("{\"product\": \"%s\", \"type\": \"%s\", \"m\": %ld, \"n\": %ld, \"k\": %ld, \"layout\": \"%c%c\", ", p.name,
              sizeof(T) == 4 ? "float" : "double", p.m, p.n, p.k, p.a_transposed ? 't' : 'n', p.b_transposed ? 't' : 'n');
  std::printf("\"shardwise_gflops\": %.1f", speed);
  if (!their_times.empty()) {
    double error = 0;
    for (std::size_t i = 0; i < c.size(); ++i) error = std::max(error, std::abs(double{c[i]} - double{reference[i]}));
    const double rival = flops / median(their_times) / 1e9;
    std::printf(", \"rival_gflops\": %.1f, \"ratio\": %.3f, \"largest_difference\": %.2g", rival, speed / rival, error);
  }
  std::printf("}\n");
  std::fflush(stdout);
}

}  // namespace

// usage: gemm [repetitions] [name filter] [double]
int main(int argc, char** argv) {
  const int repetitions = argc > 1 ? std::atoi(argv[1]) : 31;
  const std::string filter = argc > 2 ? argv[2] : "";
  for (const product& p : products) {
    if (std::strstr(p.name, filter.c_str()) == nullptr) continue;
    if (argc > 3) {
      report<double>(p, repetitions);
    } else {
      report<float>(p, repetitions);
    }
  }
}
