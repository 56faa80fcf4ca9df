// SPDX-License-Identifier: Apache-2.0
// Times attention of bfloat16 on a GPU, forward and adjoint, by cuDNN (ordered and not) and by the library's own kernels: GPT-2's shape
// (batch 16, 12 heads, 1024 x 64, causal, times before heads), 12 layers captured in one graph, as a step runs them.
// Usage: attention_cudnn [rounds]; medians in milliseconds for one layer, and the largest difference between the two.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <shardwise/operations/attention/device_low.cuh>
#include <shardwise/runtime/cuda/resources.hpp>

namespace {

namespace sw = shardwise;
namespace cu = shardwise::cuda;
namespace kernels = shardwise::cuda::attention_detail;
using T = sw::bfloat16;

constexpr sw::attention_extents shape{16, 12, 12, 1024, 1024, 64, 64};
constexpr std::size_t elements = 16 * 12 * 1024 * 64, rows = 16 * 12 * 1024;
constexpr int layers = 12;

struct tensors {
  cu::device_memory q{2 * elements}, k{2 * elements}, v{2 * elements}, dout{2 * elements}, out{2 * elements},
      dq{2 * elements}, dk{2 * elements}, dv{2 * elements}, lse{4 * rows}, delta{4 * rows};
  cu::device_memory scratch{static_cast<std::size_t>(sw::operations::attention_library_adjoint_bytes(shape) +
                                                     sw::operations::attention_projection_bytes(shape))};
  tensors() {
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

  sw::host::attention_call<T, float> call() const {
    sw::host::attention_call<T, float> x;
    x.a.layout = 1;
    x.a.causal = 1;
    x.batch = 16;
    x.heads = x.key_heads = x.whole_heads = 12;
    x.queries = x.keys = x.whole_queries = 1024;
    x.size = x.value_size = 64;
    x.scale = 0.125f;
    x.q = {at(q), x.a, 12, 1024, 64};
    x.k = {at(k), x.a, 12, 1024, 64};
    x.v = {at(v), x.a, 12, 1024, 64};
    return x;
  }
  sw::host::attention_gradients<T, float> gradients() const {
    const auto x = call();
    sw::host::attention_gradients<T, float> g;
    g.lse = sums(lse);
    g.delta = sums(delta);
    g.dout = {at(dout), x.a, 12, 1024, 64};
    g.dq = {at(dq), x.a, 12, 1024, 64};
    g.dk = {at(dk), x.a, 12, 1024, 64};
    g.dv = {at(dv), x.a, 12, 1024, 64};
    return g;
  }
};

void taken(bool by_library) {
  if (by_library) return;
  std::fprintf(stderr, "%s", cu::attention_report().c_str());
  std::exit(1);
}
void forward(const tensors& t, bool by_library, cudaStream_t s) {
  const auto x = t.call();
  if (by_library) taken(kernels::attend_by_library(x, tensors::at(t.out), tensors::sums(t.lse), t.scratch.data(), s));
  else kernels::attend(x, sw::host::attention_block<T>(tensors::at(t.out), x.a, 12, 1024, 64), tensors::sums(t.lse), s);
}
// With delta, which is an operation of its own.
void adjoint(const tensors& t, bool by_library, cudaStream_t s) {
  const auto x = t.call();
  kernels::multiply_rows<float>(t.gradients().dout,
                                sw::host::attention_block<const T>(tensors::at(t.out), x.a, 12, 1024, 64),
                                tensors::sums(t.delta), 16, 12, 1024, 64, s);
  if (by_library) taken(kernels::attend_back_by_library(x, t.gradients(), t.scratch.data(), s));
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

std::vector<float> read(const cu::device_memory& m) {
  std::vector<T> v(elements);
  cu::check(cudaMemcpy(v.data(), m.data(), 2 * elements, cudaMemcpyDeviceToHost), "cudaMemcpy");
  return {v.begin(), v.end()};
}
double difference(const std::vector<float>& a, const std::vector<float>& b) {
  double most = 0, squares = 0;
  for (std::size_t i = 0; i < a.size(); ++i) {
    squares += static_cast<double>(b[i]) * b[i];
    const double d = std::abs(static_cast<double>(a[i]) - b[i]);
    if (!(d <= most)) most = d;
  }
  return most / std::sqrt(squares / static_cast<double>(a.size()));
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 20;
  if (rounds < 1) return std::puts("usage: attention_cudnn [rounds], at least 1"), 1;
  if (!cu::used_attention_library()) return std::puts("no library is registered: link shardwise::cudnn"), 1;
  const tensors t;
  std::vector<std::vector<float>> first;
  for (const bool by_library : {false, true}) {  // both give the same before the clock starts
    forward(t, by_library, nullptr);
    adjoint(t, by_library, nullptr);
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    const std::vector<float> now[] = {read(t.out), read(t.dq), read(t.dk), read(t.dv)};
    for (int i = 0; i < 4 && by_library; ++i)
      std::printf("%s: largest difference %.2g of the root mean square\n",
                  i == 0   ? "out"
                  : i == 1 ? "dq"
                  : i == 2 ? "dk"
                           : "dv",
                  difference(now[i], first[static_cast<std::size_t>(i)]));
    first.assign(now, now + 4);
  }
  const auto row = [&](const char* name, bool by_library) {
    const double f = milliseconds(rounds, [&](cudaStream_t s) { forward(t, by_library, s); });
    const double b = milliseconds(rounds, [&](cudaStream_t s) { adjoint(t, by_library, s); });
    std::printf("%-28s forward %8.4f ms  adjoint %8.4f ms  12 layers %8.3f ms\n", name, f, b, layers * (f + b));
  };
  const std::string name = cu::used_attention_library()->name();
  row((name + ", ordered").c_str(), true);
  cu::order_attention_adjoints(false);
  row((name + ", not ordered").c_str(), true);
  cu::order_attention_adjoints(true);
  row("own kernels", false);
  std::printf("%s", cu::attention_report().c_str());
}
