// SPDX-License-Identifier: Apache-2.0
// One attention of bfloat16 on a GPU, forward and adjoint, for benchmarks: its tensors, its floating-point operations, and how long
// 12 layers captured in one graph take, as a step runs them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <shardwise/operations/attention/device_elements.cuh>
#include <shardwise/runtime/cuda/resources.hpp>

namespace gpt2_attention {

namespace sw = shardwise;
namespace cu = shardwise::cuda;
namespace kernels = shardwise::cuda::attention_detail;
using T = sw::bfloat16;

inline constexpr sw::attention_extents gpt2{16, 12, 12, 1024, 1024, 64, 64};
inline constexpr int layers = 12;

class tensors {
 public:
  sw::attention_extents e;
  std::size_t rows, elements;
  cu::device_memory q, k, v, dout, out, dq, dk, dv, lse, delta, scratch;

  explicit tensors(const sw::attention_extents& extents = gpt2)
      : e(extents),
        rows(static_cast<std::size_t>(e.batch * e.heads * e.queries)),
        elements(rows * static_cast<std::size_t>(e.size)),
        q(2 * elements),
        k(2 * elements),
        v(2 * elements),
        dout(2 * elements),
        out(2 * elements),
        dq(2 * elements),
        dk(2 * elements),
        dv(2 * elements),
        lse(4 * rows),
        delta(4 * rows),
        scratch(static_cast<std::size_t>(sw::operations::attention_library_adjoint_bytes(e) +
                                         sw::operations::attention_projection_bytes(e))) {
    std::vector<T> host(elements);
    unsigned s = 1;
    for (const cu::device_memory* m : {&q, &k, &v, &dout}) {
      for (T& x : host) {
        s = s * 1664525U + 1013904223U;
        x = T(static_cast<float>(s >> 8) / 8388608.0f - 1);
      }
      cu::check(cudaMemcpy(m->data(), host.data(), 2 * elements, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
  }
  static T* at(const cu::device_memory& m) { return reinterpret_cast<T*>(m.data()); }
  static float* sums(const cu::device_memory& m) { return reinterpret_cast<float*>(m.data()); }

  // Causal, times before heads.
  sw::host::attention_call<T, float> call() const {
    sw::host::attention_call<T, float> x;
    x.a.layout = 1;
    x.a.causal = 1;
    x.batch = e.batch;
    x.heads = x.key_heads = x.whole_heads = e.heads;
    x.queries = x.keys = x.whole_queries = e.queries;
    x.size = x.value_size = e.size;
    x.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(e.size)));
    x.q = {at(q), x.a, e.heads, e.queries, e.size};
    x.k = {at(k), x.a, e.heads, e.queries, e.size};
    x.v = {at(v), x.a, e.heads, e.queries, e.size};
    return x;
  }
  sw::host::attention_block<T> result() const { return block(at(out)); }
  sw::host::attention_gradients<T, float> gradients() const {
    sw::host::attention_gradients<T, float> g;
    g.lse = sums(lse);
    g.delta = sums(delta);
    g.dout = {at(dout), call().a, e.heads, e.queries, e.size};
    g.dq = block(at(dq));
    g.dk = block(at(dk));
    g.dv = block(at(dv));
    return g;
  }
  void multiply(cudaStream_t s) const {
    const sw::host::attention_block<const T> of(at(out), call().a, e.heads, e.queries, e.size);
    kernels::multiply_rows<float>(gradients().dout, of, sums(delta), e.batch, e.heads, e.queries, e.size, s);
  }
  std::vector<float> read(const cu::device_memory& m) const {
    std::vector<T> host(elements);
    cu::check(cudaMemcpy(host.data(), m.data(), 2 * elements, cudaMemcpyDeviceToHost), "cudaMemcpy");
    return {host.begin(), host.end()};
  }
  // Of a forward pass: two products of half of the pairs of queries and keys. An adjoint's are five.
  double operations() const {
    return 2 * static_cast<double>(e.batch * e.heads * e.queries) * static_cast<double>(e.queries * e.size);
  }

 private:
  sw::host::attention_block<T> block(T* p) const { return {p, call().a, e.heads, e.queries, e.size}; }
};

enum class way { library, tensor_cores, plain };

inline void must_be_taken(bool taken) {
  if (taken) return;
  std::fprintf(stderr, "not taken\n%s", cu::attention_report().c_str());
  std::exit(1);
}
inline void forward(const tensors& t, way by, cudaStream_t s) {
  const auto x = t.call();
  float* const lse = tensors::sums(t.lse);
  if (by == way::library) must_be_taken(kernels::attend_by_library(x, tensors::at(t.out), lse, t.scratch.data(), s));
  else if (by == way::tensor_cores) must_be_taken(kernels::attend_by_mma(x, t.result(), lse, false, s));
  else kernels::attend(x, t.result(), lse, s);
}
// With delta, which is an operation of its own.
inline void adjoint(const tensors& t, way by, cudaStream_t s) {
  const auto x = t.call();
  t.multiply(s);
  if (by == way::library) must_be_taken(kernels::attend_back_by_library(x, t.gradients(), t.scratch.data(), s));
  else if (by == way::tensor_cores) must_be_taken(kernels::attend_back_by_mma(x, t.gradients(), false, s));
  else kernels::attend_back(x, t.gradients(), s);
}

// Milliseconds of one of `layers` captured together: the median of so many replays.
template <class F>
double milliseconds(int rounds, F&& f) {
  cu::stream stream;
  f(stream.get());  // libraries load and plan
  cu::check(cudaStreamSynchronize(stream.get()), "cudaStreamSynchronize");
  cudaGraph_t graph = nullptr;
  cudaGraphExec_t runs = nullptr;
  cu::check(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "cudaStreamBeginCapture");
  for (int i = 0; i < layers; ++i) f(stream.get());
  cu::check(cudaStreamEndCapture(stream.get(), &graph), "cudaStreamEndCapture");
  cu::check(cudaGraphInstantiate(&runs, graph, 0), "cudaGraphInstantiate");
  cudaEvent_t begin = nullptr, end = nullptr;
  cu::check(cudaEventCreate(&begin), "cudaEventCreate");
  cu::check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> all;
  for (int i = 0; i <= rounds; ++i) {
    cu::check(cudaEventRecord(begin, stream.get()), "cudaEventRecord");
    cu::check(cudaGraphLaunch(runs, stream.get()), "cudaGraphLaunch");
    cu::check(cudaEventRecord(end, stream.get()), "cudaEventRecord");
    cu::check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    cu::check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (i > 0) all.push_back(ms / layers);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  cudaGraphExecDestroy(runs);
  cudaGraphDestroy(graph);
  std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
  return all[static_cast<std::size_t>(rounds / 2)];
}

// One line: milliseconds of a layer and 10^12 operations a second, forward and adjoint; milliseconds of 12 layers.
inline void print_times(const char* name, const tensors& t, way by, int rounds) {
  const double f = milliseconds(rounds, [&](cudaStream_t s) { forward(t, by, s); });
  const double b = milliseconds(rounds, [&](cudaStream_t s) { adjoint(t, by, s); });
  std::printf("%-28s forward %8.4f ms %6.1f TFLOP/s  adjoint %8.4f ms %6.1f TFLOP/s  12 layers %8.3f ms\n", name, f,
              t.operations() / f * 1e-9, b, 2.5 * t.operations() / b * 1e-9, layers * (f + b));
  std::fflush(stdout);
}

// Both ways give the same before the clock starts.
inline void print_differences(const tensors& t, way one, way other) {
  std::vector<std::vector<float>> first;
  for (const way by : {one, other}) {
    forward(t, by, nullptr);
    adjoint(t, by, nullptr);
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const std::vector<float> now[] = {t.read(t.out), t.read(t.dq), t.read(t.dk), t.read(t.dv)};
    for (std::size_t i = 0; i < 4 && !first.empty(); ++i) {
      double most = 0, squares = 0;
      for (std::size_t n = 0; n < t.elements; ++n) {
        squares += static_cast<double>(first[i][n]) * first[i][n];
        const double d = std::abs(static_cast<double>(now[i][n]) - first[i][n]);
        if (!(d <= most)) most = d;
      }
      const char* const names[] = {"out", "dq", "dk", "dv"};
      std::printf("%s: largest difference %.2g of the root mean square\n", names[i],
                  most / std::sqrt(squares / static_cast<double>(t.elements)));
    }
    first.assign(now, now + 4);
  }
}

}  // namespace gpt2_attention
