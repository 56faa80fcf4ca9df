// SPDX-License-Identifier: Apache-2.0
// Products of float on the first GPU, by cuBLASLt's algorithm that its search finds, by the same in TF32, and as three products of TF32
// (split_product) with the depth in one to eight parts: microseconds of one, and how far elements are from the exact ones, which are computed in double
// on the host for 64 of them: the root of the mean square, of such of the exact ones.
// usage: bench_gemm_split_sm90a_cuda
#include <shardwise/cuda.cuh>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <vector>

namespace {

namespace sw = shardwise;
namespace cu = shardwise::cuda;

struct size {
  const char* what;
  std::int64_t m, n, k;
  bool transposed_a, transposed_b;
};

// Microseconds of one of `f`'s launches: of five rounds the median.
template <class F>
double microseconds(cudaStream_t stream, const F& f) {
  f();
  std::vector<double> all;
  for (int turn = 0; turn < 5; ++turn) {
    constexpr int times = 20;
    cu::timing_event begin, end;
    begin.record(stream);
    for (int i = 0; i < times; ++i) f();
    end.record(stream);
    cu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    all.push_back(static_cast<double>(end.since(begin)) * 1e-3 / times);
  }
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// In columns: D of n x m, as matmul_shape says; a layer's y = x w^T of m rows is that with A = w, B = x.
void row(cu::context& ctx, const size& z, float* at, void* scratch) {
  cu::matmul_shape s;
  s.rows = z.n;
  s.columns = z.m;
  s.depth = z.k;
  s.type = CUDA_R_32F;
  s.transposed_a = z.transposed_a ? 1 : 0;
  s.transposed_b = z.transposed_b ? 1 : 0;
  s.ld_a = z.transposed_a ? z.k : z.n;
  s.ld_b = z.transposed_b ? z.m : z.k;
  s.ld_d = z.n;
  float *const a = at, *const b = a + z.n * z.k, *const d = b + z.m * z.k;
  std::vector<float> x(static_cast<std::size_t>((z.n + z.m) * z.k)), y(static_cast<std::size_t>(z.n * z.m));
  std::uint32_t h = 12345;
  for (float& v : x) {
    h = h * 1664525U + 1013904223U;
    v = static_cast<float>(h >> 8) * 0x1p-23F - 1;
  }
  const auto upload = [&] { cu::check(cudaMemcpy(a, x.data(), x.size() * 4, cudaMemcpyHostToDevice), "cudaMemcpy"); };
  const auto error = [&] {
    cu::check(cudaMemcpy(y.data(), d, y.size() * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    double squares = 0, of = 0;
    for (std::int64_t e = 0; e < 64; ++e) {
      const std::int64_t i = e * 7919 % z.n, j = e * 104729 % z.m;
      double exact = 0;
      for (std::int64_t k = 0; k < z.k; ++k)
        exact +=
            static_cast<double>(x[static_cast<std::size_t>(z.transposed_a ? i * s.ld_a + k : k * s.ld_a + i)]) *
            static_cast<double>(x[static_cast<std::size_t>(z.n * z.k + (z.transposed_b ? k * s.ld_b + j : j * s.ld_b + k))]);
      const double off = static_cast<double>(y[static_cast<std::size_t>(j * z.n + i)]) - exact;
      squares += off * off;
      of += exact * exact;
    }
    return std::sqrt(squares / of);
  };
  const float alpha = 1, beta = 0;
  const auto library = [&] { ctx.plans->run(s, &alpha, a, b, &beta, d, scratch, ctx); };
  const auto measure = [&] {
    library();  // the search overwrites the factors
    upload();
    return microseconds(ctx.stream, library);
  };
  const double float_us = measure(), float_error = error();
  ctx.plans->set_precision(sw::fp32_precision::tf32);
  const double tf32_us = measure(), tf32_error = error();
  ctx.plans->set_precision(sw::fp32_precision::ieee);
  std::printf(
      R"({"what":"%s","m":%d,"n":%d,"k":%d,"float_us":%.1f,"float_error":%.1e,"tf32_us":%.1f,"tf32_error":%.1e,"split_us":[)",
      z.what, static_cast<int>(z.m), static_cast<int>(z.n), static_cast<int>(z.k), float_us, float_error, tf32_us,
      tf32_error);
  double most = 0;
  for (int splits = 1; splits <= cu::split_product::most_splits; ++splits) {
    cu::check(cudaMemsetAsync(d, 0xff, y.size() * 4, ctx.stream), "cudaMemsetAsync");
    if (!cu::split_product::takes_splits(s, splits)) break;
    const double us = microseconds(
        ctx.stream, [&] { cu::split_product::run(s, splits, &alpha, {a, b, d, d, nullptr, nullptr}, &beta, scratch, ctx); });
    std::printf("%s%.1f", splits == 1 ? "" : ",", us);
    const double e = error();
    most = e > most || e != e ? e : most;
  }
  std::printf("],\"split_error\":%.1e,\"unmeasured_choice\":%d}\n", most, cu::split_product::splits_of(s));
}

}  // namespace

int main() {
  try {
    if (cu::device_count() < 1) return std::puts("no GPU found: nothing is measured"), 0;
    if (!cu::split_product::is_compiled())
      return std::puts("not compiled for sm_90a, or the GPU is no Hopper: nothing is measured"), 0;
    cudaDeviceProp device{};
    cu::check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
    std::printf("{\"device\":\"%s\"}\n", device.name);
    const cu::device_memory all(std::size_t{1} << 30), scratch(std::size_t{1} << 26);
    cu::step_state state(device.multiProcessorCount);
    cu::context& ctx = state.of_stream(0);
    ctx.plans->begin_search({sw::product_choice::measured, 1e9, false, ""}, ctx.stream);
    for (const size& z :
         {size{"forward", 128, 4096, 4096, true, false}, size{"input gradient", 128, 4096, 4096, false, false},
          size{"weight gradient", 4096, 4096, 128, false, true}, size{"forward", 8192, 768, 768, true, false},
          size{"input gradient", 8192, 768, 768, false, false}, size{"weight gradient", 768, 768, 8192, false, true},
          size{"forward", 8192, 3072, 768, true, false}, size{"input gradient", 8192, 768, 3072, false, false},
          size{"weight gradient", 3072, 768, 8192, false, true}, size{"forward", 8192, 768, 3072, true, false},
          size{"input gradient", 8192, 3072, 768, false, false}, size{"weight gradient", 768, 3072, 8192, false, true},
          size{"square", 1024, 1024, 1024, true, false}, size{"square", 4096, 4096, 4096, true, false}})
      row(ctx, z, reinterpret_cast<float*>(all.data()), scratch.data());
    ctx.plans->end_search();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
