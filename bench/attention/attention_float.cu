// SPDX-License-Identifier: Apache-2.0
// Times attention of float on a GPU, forward and adjoint, by tensor cores with factors in two parts and by TF32, in several shapes, and
// without: GPT-2's shape (batch 8, 12 heads, 1024 x 64, causal, times before heads), and heads of 128. Every row is what the first gives
// but for rounding (1e-4 in two parts, 1e-2 by TF32), or it is named and the exit status is 1.
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
void row(const char* name, const tensors& t, int rounds, double bound, F&& forward, Q&& of_queries, K&& of_keys) {
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
  good = good && worst < bound;
  const double product =
      static_cast<double>(batch * heads * times) * static_cast<double>(times * t.size) / 1e9;  // causal: half of it
  std::printf(
      "%-42s forward %7.3f ms %5.1f TFLOP/s  dq %7.3f  dk, dv %7.3f  adjoint %7.3f ms %5.1f TFLOP/s  differs by %.1e%s\n",
      name, f, 2 * product / f, q, k, q + k, 5 * product / (q + k), worst, worst < bound ? "" : "  WRONG");
}

using in_two_parts = kernels::mma::split_factors;
using by_tf32 = kernels::mma::tf32_factors;
template <class F>
inline constexpr double bound_of = F::terms == 1 ? 1e-2 : 1e-4;

// Forward, dq, and dk and dv, each in a shape.
template <class Forward, class Queries, class Keys>
void shaped(const char* name, const tensors& t, int rounds) {
  const auto x = t.call();
  const auto g = t.gradients();
  row(
      name, t, rounds, bound_of<typename Forward::factors>,
      [&] { kernels::mma::attend<Forward>(x, t.result(), t.at(t.lse), nullptr); },
      [&] { kernels::mma::attend_back_to_queries<Queries>(x, g, nullptr); },
      [&] { kernels::mma::attend_back_to_keys<Keys>(x, g, nullptr); });
}
template <class F, int Size>
void as_programs_run_it(const char* name, const tensors& t, int rounds) {
  shaped<kernels::mma::forward_shape_of<F, Size>, kernels::mma::queries_shape_of<F, Size>,
         kernels::mma::keys_shape_of<F, Size>>(name, t, rounds);
}
template <class F, int Size, int Strips, int Warps, int Columns, bool Held, int Blocks>
void in_one_shape(const char* name, const tensors& t, int rounds) {
  using backward = kernels::mma::backward_shape<F, Size, Strips, Warps, Columns, Held, Blocks>;
  shaped<kernels::mma::forward_shape<F, Size, Strips, Warps, Columns, Held, Blocks>, backward, backward>(name, t, rounds);
}

}  // namespace

#define IN_ONE_SHAPE(...) in_one_shape<__VA_ARGS__>(#__VA_ARGS__, t, rounds)

int main(int argc, char** argv) {
  const int rounds = argc > 1 ? std::atoi(argv[1]) : 10;
  if (rounds < 1) return std::puts("usage: attention_float [rounds], at least 1"), 1;
  for (const std::int64_t size : {64, 128}) {
    const tensors t(size);
    const auto x = t.call();
    auto of_queries = t.gradients(), of_keys = of_queries;
    of_queries.dk.data = of_queries.dv.data = nullptr;
    of_keys.dq.data = nullptr;
    std::printf("heads of %d; size, strips, warps, columns, held, blocks\n", static_cast<int>(size));
    row(
        "without tensor cores", t, rounds, 1e-4, [&] { kernels::attend(x, t.result(), t.at(t.lse), nullptr); },
        [&] { kernels::attend_back(x, of_queries, nullptr); }, [&] { kernels::attend_back(x, of_keys, nullptr); });
    if (size == 64) {
      as_programs_run_it<in_two_parts, 64>("in two parts, as programs run it", t, rounds);
      as_programs_run_it<by_tf32, 64>("by TF32, as programs run it", t, rounds);
      IN_ONE_SHAPE(in_two_parts, 64, 1, 4, 32, false, 3);
      IN_ONE_SHAPE(in_two_parts, 64, 1, 8, 64, false, 1);
      IN_ONE_SHAPE(in_two_parts, 64, 2, 4, 32, false, 1);
      IN_ONE_SHAPE(by_tf32, 64, 1, 4, 32, true, 2);
      IN_ONE_SHAPE(by_tf32, 64, 2, 4, 64, false, 1);
    } else {
      as_programs_run_it<in_two_parts, 128>("in two parts, as programs run it", t, rounds);
      as_programs_run_it<by_tf32, 128>("by TF32, as programs run it", t, rounds);
      IN_ONE_SHAPE(in_two_parts, 128, 1, 8, 32, true, 1);
    }
  }
  return good ? 0 : 1;
}
