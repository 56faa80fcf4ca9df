// SPDX-License-Identifier: Apache-2.0
// Times attention of float on a GPU, forward and adjoint, by the library's kernels with several tiles: GPT-2's shape (batch 8, 12 heads,
// 1024 x 64, causal, times before heads), and heads of 128. Every row is what the first gives, or it is named and the exit status is 1.
// Usage: attention_float [rounds]; medians in milliseconds for one layer, and the operations a second of a least algorithm: two products
// forward and five backward of the half of the scores that are seen.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <vector>

#include <shardwise/operations/attention/device.cuh>
#include <shardwise/runtime/cuda/resources.hpp>

namespace {

namespace sw = shardwise;
namespace cu = shardwise::cuda;
namespace kernels = shardwise::cuda::attention_detail;

constexpr std::int64_t batch = 8, heads = 12, times = 1024;

struct tensors {
  std::int64_t size;
  std::size_t count = static_cast<std::size_t>(batch * heads * times * size), rows = count / static_cast<std::size_t>(size);
  cu::device_memory q{4 * count}, k{4 * count}, v{4 * count}, dout{4 * count}, out{4 * count}, dq{4 * count}, dk{4 * count},
      dv{4 * count}, lse{4 * rows}, delta{4 * rows};
  explicit tensors(std::int64_t n) : size(n) {
    std::vector<float> host(count);
    unsigned s = 1;
    for (const cu::device_memory* m : {&q, &k, &v, &dout}) {
      for (float& x : host) {
        s = s * 1664525U + 1013904223U;
        x = static_cast<float>(s >> 8) / 8388608.0f - 1;
      }
      cu::check(cudaMemcpy(m->data(), host.data(), 4 * count, cudaMemcpyHostToDevice), "cudaMemcpy");
    }
  }
  static float* at(const cu::device_memory& m) { return reinterpret_cast<float*>(m.data()); }
  template <class B>
  void point(B& block, const cu::device_memory& m) const {
    sw::attention_attributes a;
    a.layout = 1;
    block = {at(m), a, heads, times, size};
  }

  sw::host::attention_call<float> call() const {
    sw::host::attention_call<float> x;
    x.a.layout = 1;
    x.a.causal = 1;
    x.batch = batch;
    x.heads = x.key_heads = x.whole_heads = heads;
    x.queries = x.keys = x.whole_queries = times;
    x.size = x.value_size = size;
    x.scale = 0.125f;
    point(x.q, q);
    point(x.k, k);
    point(x.v, v);
    return x;
  }
  sw::host::attention_block<float> result() const {
    sw::host::attention_block<float> o;
    point(o, out);
    return o;
  }
  sw::host::attention_gradients<float> gradients() const {
    sw::host::attention_gradients<float> g;
    g.lse = at(lse);
    g.delta = at(delta);
    point(g.dout, dout);
    point(g.dq, dq);
    point(g.dk, dk);
    point(g.dv, dv);
    return g;
  }
  void deltas() const {
    sw::host::attention_block<const float> o;
    point(o, out);
    kernels::multiply_rows<float>(gradients().dout, o, at(delta), batch, heads, times, size, nullptr);
  }
  std::vector<float> all() const {
    std::vector<float> v;
    for (const cu::device_memory* m : {&out, &dq, &dk, &dv}) {
      std::vector<float> one(count);
      cu::check(cudaMemcpy(one.data(), m->data(), 4 * count, cudaMemcpyDeviceToHost), "cudaMemcpy");
      v.insert(v.end(), one.begin(), one.end());
    }
    return v;
  }
};

template <class F>
double milliseconds(int rounds, F&& f) {
  cudaEvent_t begin = nullptr, end = nullptr;
  cu::check(cudaEventCreate(&begin), "cudaEventCreate");
  cu::check(cudaEventCreate(&end), "cudaEventCreate");
  std::vector<float> all;
  for (int i = 0; i <= rounds; ++i) {
    cu::check(cudaEventRecord(begin), "cudaEventRecord");
    f();
    cu::check(cudaEventRecord(end), "cudaEventRecord");
    cu::check(cudaEventSynchronize(end), "cudaEventSynchronize");
    float ms = 0;
    cu::check(cudaEventElapsedTime(&ms, begin, end), "cudaEventElapsedTime");
    if (i > 0) all.push_back(ms);
  }
  cudaEventDestroy(begin);
  cudaEventDestroy(end);
  std::nth_element(all.begin(), all.begin() + rounds / 2, all.end());
  return all[static_cast<std::size_t>(rounds / 2)];
}

std::vector<float> expected;
bool good = true;

template <class F, class Q, class K>
void row(const char* name, const tensors& t, int rounds, F&& forward, Q&& of_queries, K&& of_keys) {
  for (const cu::device_memory* m : {&t.out, &t.dq, &t.dk, &t.dv, &t.lse})
    cu::check(cudaMemset(m->data(), 255, m == &t.lse ? 4 * t.rows : 4 * t.count), "cudaMemset");
  const double f = milliseconds(rounds, forward);
  t.deltas();
  const double q = milliseconds(rounds, of_queries), k = milliseconds(rounds, of_keys);
  const std::vector<float> now = t.all();
  if (expected.size() != now.size()) expected = now;
  double worst = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    const double d = std::abs(static_cast<double>(now[i]) - expected[i]);
    if (!(d <= worst)) worst = d;
  }
  good = good && worst < 1e-3;
  const double product =
      static_cast<double>(batch * heads * times) * static_cast<double>(times * t.size) / 1e9;  // causal: half of it
  std::printf(
      "%-34s forward %7.3f ms %5.1f TFLOP/s  dq %7.3f  dk, dv %7.3f  adjoint %7.3f ms %5.1f TFLOP/s  differs by %.1e%s\n",
      name, f, 2 * product / f, q, k, q + k, 5 * product / (q + k), worst, worst < 1e-3 ? "" : "  WRONG");
}
template <class Tile>
void tiled(const char* name, const tensors& t, int rounds) {
  const auto x = t.call();
  const auto g = t.gradients();
  row(
      name, t, rounds, [&] { kernels::attend_by_tiles<Tile>(x, t.result(), t.at(t.lse), nullptr); },
      [&] { kernels::attend_back_queries_by_tiles<Tile>(x, g, nullptr); },
      [&] { kernels::attend_back_keys_by_tiles<Tile>(x, g, nullptr); });
}

}  // namespace

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  if (rounds < 1) return std::puts("usage: attention_float [rounds], at least 1"), 1;
  {
    const tensors t(64);
    const auto x = t.call();
    const auto g = t.gradients();
    auto of_queries = g, of_keys = g;
    of_queries.dk.data = of_queries.dv.data = nullptr;
    of_keys.dq.data = nullptr;
    row(
        "64, as programs run it", t, rounds, [&] { kernels::attend(x, t.result(), t.at(t.lse), nullptr); },
        [&] { kernels::attend_back(x, of_queries, nullptr); }, [&] { kernels::attend_back(x, of_keys, nullptr); });
    const cu::device_memory turns(
        static_cast<std::size_t>(sw::operations::attention_turn_bytes({batch, heads, heads, times, times, t.size, t.size})));
    row(
        "64, dq in turns", t, rounds, [&] { kernels::attend(x, t.result(), t.at(t.lse), nullptr); },
        [&] { kernels::attend_back(x, g, nullptr, turns.data()); }, [] {});
    tiled<kernels::tiling<float, 64, 64, 64, 8>>("64, 64 x 64, 8 x 16 threads", t, rounds);
    tiled<kernels::tiling<float, 64, 64, 64, 16, 8>>("64, 64 x 64, 16 x 8 threads", t, rounds);
    tiled<kernels::tiling<float, 64, 32, 64, 16, 8>>("64, 32 x 64, 16 x 8 threads", t, rounds);
    tiled<kernels::tiling<float, 64, 32, 64, 8, 16>>("64, 32 x 64, 8 x 16 threads", t, rounds);
  }
  {
    const tensors t(128);
    tiled<kernels::tiling<float, 128, 64, 64, 16>>("128, 64 x 64, 16 x 16 threads", t, rounds);
    tiled<kernels::tiling<float, 128, 64, 32, 8>>("128, 64 x 32, 8 x 16 threads", t, rounds);
  }
  return good ? 0 : 1;
}
