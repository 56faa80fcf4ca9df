// SPDX-License-Identifier: Apache-2.0
// Small products on the first GPU, by the library's own kernel in either size of tiles and by cuBLASLt's algorithm that its search finds: microseconds of
// one in a graph of many. Where is_worth_flat and most_small_tiles come from.
// usage: bench_gemm_small_cuda
#include <shardwise/cuda.cuh>

#include <algorithm>
#include <cstdio>
#include <vector>

namespace {

namespace sw = shardwise;
namespace cu = shardwise::cuda;
using sw::runtime::call;
using sw::runtime::layout;

layout dense(std::int64_t rows, std::int64_t columns) {
  layout l;
  l.rank = 2;
  l.ext[0] = l.global[0] = rows;
  l.ext[1] = l.global[1] = columns;
  l.make_dense();
  return l;
}

// Microseconds of one of `f`'s launches, the median of nine graphs of 50.
template <class F>
double microseconds(cudaStream_t stream, const F& f) {
  f();  // finds the algorithm, which no capture allows
  cu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runs = nullptr;
  cu::check(cudaStreamBeginCapture(stream, cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int k = 0; k < 50; ++k) f();
  cu::check(cudaStreamEndCapture(stream, &graph), "cudaStreamEndCapture");
  cu::check(cudaGraphInstantiate(&runs, graph, 0), "cudaGraphInstantiate");
  std::vector<double> all;
  for (int turn = 0; turn < 9; ++turn) {
    cu::timing_event begin, end;
    begin.record(stream);
    cu::check(cudaGraphLaunch(runs, stream), "cudaGraphLaunch");
    end.record(stream);
    cu::check(cudaStreamSynchronize(stream), "cudaStreamSynchronize");
    all.push_back(static_cast<double>(end.since(begin)) * 1e-3 / 50);
  }
  cudaGraphExecDestroy(runs);
  cudaGraphDestroy(graph);
  std::sort(all.begin(), all.end());
  return all[all.size() / 2];
}

// y = x w^T, as a layer has it, and its weight's gradient dy^T x.
template <class T>
void row(cu::context& ctx, const char* type, std::int64_t m, std::int64_t n, std::int64_t k, bool gradient, std::byte* at) {
  call c;
  c.inputs = c.all_inputs = 2;
  constexpr std::int64_t r = 1, i = 2, o = 3;  // labels, outermost dim first
  c.a = sw::pack_attributes(
      gradient ? sw::einsum_attributes{.lhs = r | o << 4, .rhs = r | i << 4, .out = o | i << 4, .keeps_sums = 0}
               : sw::einsum_attributes{.lhs = r | i << 4, .rhs = o | i << 4, .out = r | o << 4, .keeps_sums = 0});
  c.f = 1;
  c.l[0] = gradient ? dense(k, m) : dense(m, k);
  c.l[1] = gradient ? dense(k, n) : dense(n, k);
  c.l[sw::runtime::result] = dense(m, n);
  c.p[0] = at;
  c.p[1] = at + (std::size_t{1} << 26);
  c.p[sw::runtime::result] = at + (std::size_t{2} << 26);
  c.workspace = at + (std::size_t{3} << 26);
  const double library = microseconds(ctx.stream, [&] { cu::detail::device_einsum<T>(c, ctx).run(); });
  const auto own = [&]<class Tiles>(Tiles) {
    return microseconds(ctx.stream, [&] {
      cu::detail::run_flat_product<T, false, Tiles>(c, cu::no_epilogue{}, nullptr, nullptr, true, ctx);
    });
  };
  const double small = own(cu::detail::small_tiles{}), large = own(cu::detail::large_tiles{});
  std::printf(
      "{\"type\":\"%s\",\"what\":\"%s\",\"m\":%d,\"n\":%d,\"k\":%d,\"cublaslt_us\":%.2f,\"tiles_8_us\":%.2f,\"tiles_16_us\":%.2f}\n",
      type, gradient ? "gradient" : "forward", static_cast<int>(m), static_cast<int>(n), static_cast<int>(k), library, small,
      large);
}

}  // namespace

int main() {
  try {
    if (cu::device_count() < 1) return std::puts("no GPU found: nothing is measured"), 0;
    const cu::device_memory all(std::size_t{1} << 29);
    cu::check(cudaMemset(all.data(), 0x3c, std::size_t{1} << 28), "cudaMemset");  // small numbers
    cudaDeviceProp device{};
    cu::check(cudaGetDeviceProperties(&device, 0), "cudaGetDeviceProperties");
    cu::step_state state(device.multiProcessorCount);
    cu::context& ctx = state.of_stream(0);
    ctx.plans->begin_search({sw::product_choice::measured, 1e9, false, ""}, ctx.stream);
    struct size {
      std::int64_t m, n, k;
    };
    for (const size s :
         {size{20, 16, 10}, size{16, 64, 32}, size{64, 64, 64}, size{100, 100, 100}, size{128, 128, 128}, size{64, 64, 1024},
          size{128, 128, 512}, size{192, 192, 192}, size{256, 256, 128}, size{256, 256, 256}, size{1024, 64, 64},
          size{2048, 128, 64}, size{4096, 64, 64}, size{16, 16, 16384}, size{512, 512, 64}})
      for (const bool gradient : {false, true}) {
        row<float>(ctx, "float", s.m, s.n, s.k, gradient, all.data());
        row<double>(ctx, "double", s.m, s.n, s.k, gradient, all.data());
        row<sw::bfloat16>(ctx, "bfloat16", s.m, s.n, s.k, gradient, all.data());
      }
    ctx.plans->end_search();
  } catch (const std::exception& e) {
    std::fprintf(stderr, "%s\n", e.what());
    return 1;
  }
}
