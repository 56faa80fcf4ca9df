// SPDX-License-Identifier: Apache-2.0
// One attention of float or of two-byte elements, forward and adjoint, on a device and on the host in float from the same values.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include <shardwise/operations/attention/device_low.cuh>
#include <shardwise/operations/attention/host.hpp>
#include <shardwise/runtime/cuda/resources.hpp>

namespace attention_test {

namespace sw = shardwise;
namespace cu = shardwise::cuda;
namespace kernels = shardwise::cuda::attention_detail;

inline bool has_gpu() {
  int n = 0;
  if (cudaGetDeviceCount(&n) == cudaSuccess && n > 0) return true;
  cudaGetLastError();
  std::puts("no GPU found, skipped: 0 GPUs, 1 needed");
  return false;
}

struct problem {
  sw::attention_extents e;
  int layout = 0;
  bool causal = true;
  int window = 0;
  std::int64_t first_query = 0;
  int further = 0;  // bits of attention_operand
  double dropout = 0;

  bool has(sw::attention_operand o) const { return (further & static_cast<int>(o)) != 0; }
  std::size_t scores() const { return static_cast<std::size_t>(e.batch * e.heads * e.queries * e.keys); }
  std::size_t queries(std::int64_t size) const { return static_cast<std::size_t>(e.batch * e.heads * e.queries * size); }
  std::size_t keys(std::int64_t size) const { return static_cast<std::size_t>(e.batch * e.key_heads * e.keys * size); }
};

// The operands of a call beside q, k and v.
template <class T>
struct further_operands {
  const T *bias = nullptr, *key = nullptr;
  const std::int32_t *mask = nullptr, *documents = nullptr;
};

// Where the blocks of a call lie; Sum: what kernels compute in. Rows of the batch share a bias, heads a mask.
template <class T>
sw::host::attention_call<T, float> call_of(const problem& p, const T* q, const T* k, const T* v,
                                           const further_operands<T>& more = {}) {
  sw::host::attention_call<T, float> x;
  x.a.layout = p.layout;
  x.a.causal = p.causal ? 1 : 0;
  x.a.window = p.window;
  x.batch = p.e.batch;
  x.heads = x.whole_heads = p.e.heads;
  x.key_heads = p.e.key_heads;
  x.queries = x.whole_queries = p.e.queries;
  x.keys = p.e.keys;
  x.size = p.e.size;
  x.value_size = p.e.value_size;
  x.group = p.e.group();
  x.first_query = p.first_query;
  x.scale = static_cast<float>(1 / std::sqrt(static_cast<double>(p.e.size)));
  x.q = {q, x.a, x.heads, x.queries, x.size};
  x.k = {k, x.a, x.key_heads, x.keys, x.size};
  x.v = {v, x.a, x.key_heads, x.keys, x.value_size};
  x.a.dropout = p.dropout;
  x.bias = {more.bias, {0, x.queries * x.keys, x.keys, 1}};
  x.mask = {more.mask, {x.queries * x.keys, 0, x.keys, 1}};
  x.documents = more.documents;
  x.key = more.key;
  return x;
}

// What comes out, as float.
struct outcome {
  std::vector<float> out, lse, dq, dk, dv;
};

// Law: largest difference, of elements about as large as their root mean square, or as `least` where that is less: gradients of a few keys
// cancel, of one they are 0. What is not finite is to be equal.
inline double difference(const std::vector<float>& a, const std::vector<float>& b, double least = 1e-5) {
  if (a.size() != b.size() || b.empty()) return HUGE_VAL;
  double squares = 0, most = 0;
  for (const float v : b) squares += std::isfinite(v) ? static_cast<double>(v) * v : 0;
  const double rms = std::sqrt(squares / static_cast<double>(b.size()));
  for (std::size_t i = 0; i < a.size(); ++i) {
    if (a[i] == b[i] || (std::isnan(a[i]) && std::isnan(b[i]))) continue;
    const double d = std::abs(static_cast<double>(a[i]) - b[i]) / (std::abs(static_cast<double>(b[i])) + rms + least);
    if (!(d <= most)) most = std::isnan(d) ? HUGE_VAL : d;
  }
  return most;
}

// Values from -1 to 1 that T holds.
template <class T>
std::vector<T> some(std::size_t n, double salt) {
  std::vector<T> v(n);
  for (std::size_t i = 0; i < n; ++i) {
    const double x = std::sin(12.9898 * static_cast<double>(i + 1) + 78.233 * salt) * 43758.5453;
    v[i] = T(static_cast<float>(2 * (x - std::floor(x)) - 1));
  }
  return v;
}
template <class T>
std::vector<float> floats(const std::vector<T>& v) {
  std::vector<float> f(v.size());
  for (std::size_t i = 0; i < v.size(); ++i) f[i] = static_cast<float>(v[i]);
  return f;
}

// Masks hide two keys of five and every key of some queries; documents are of 13 keys.
template <class T>
struct operands {
  std::vector<T> q, k, v, dout, bias, key;
  std::vector<std::int32_t> mask, documents;
  explicit operands(const problem& p)
      : q(some<T>(p.queries(p.e.size), 1)),
        k(some<T>(p.keys(p.e.size), 2)),
        v(some<T>(p.keys(p.e.value_size), 3)),
        dout(some<T>(p.queries(p.e.value_size), 4)) {
    using sw::attention_operand;
    if (p.has(attention_operand::bias)) bias = some<T>(p.scores() / static_cast<std::size_t>(p.e.batch), 5);
    if (p.has(attention_operand::key)) key = {T(0.125f), T(0.75f), T(0.3125f), T(0.5f)};
    if (p.has(attention_operand::mask))
      for (std::size_t i = 0; i < p.scores() / static_cast<std::size_t>(p.e.heads); ++i)
        mask.push_back(i / static_cast<std::size_t>(p.e.keys) % 7 != 4 && i * 7 % 5 < 3);
    if (p.has(attention_operand::documents))
      for (std::int64_t i = 0; i < p.e.batch * p.e.keys; ++i) documents.push_back(static_cast<std::int32_t>(i / 13));
  }
};

// Null where there are none.
template <class T>
const T* of_some(const std::vector<T>& v) {
  return v.empty() ? nullptr : v.data();
}

template <class T>
outcome on_host(const problem& p, const operands<T>& of) {
  const std::vector<float> q = floats(of.q), k = floats(of.k), v = floats(of.v), dout = floats(of.dout),
                           bias = floats(of.bias), key = floats(of.key);
  const further_operands<float> more{of_some(bias), of_some(key), of_some(of.mask), of_some(of.documents)};
  outcome r;
  r.out.resize(p.queries(p.e.value_size));
  r.lse.resize(p.queries(1));
  r.dq.resize(q.size());
  r.dk.resize(k.size());
  r.dv.resize(v.size());
  const auto x = call_of(p, q.data(), k.data(), v.data(), more);
  const sw::host::attention_block<float> out(r.out.data(), x.a, x.heads, x.queries, x.value_size);
  const sw::host::attention_block<const float> d(dout.data(), x.a, x.heads, x.queries, x.value_size);
  std::vector<float> delta(r.lse.size());
  sw::host::attention_gradients<float> g;
  g.lse = r.lse.data();
  g.delta = delta.data();
  g.dout = d;
  g.dq = {r.dq.data(), x.a, x.heads, x.queries, x.size};
  g.dk = {r.dk.data(), x.a, x.key_heads, x.keys, x.size};
  g.dv = {r.dv.data(), x.a, x.key_heads, x.keys, x.value_size};
  for (std::int64_t b = 0; b < x.batch; ++b)
    for (std::int64_t h = 0; h < x.key_heads; ++h) {
      sw::host::attend_group<float>(x, b, h, out, r.lse.data());
      for (std::int64_t i = h * x.group; i < (h + 1) * x.group; ++i)
        for (std::int64_t t = 0; t < x.queries; ++t)
          delta[static_cast<std::size_t>((b * x.heads + i) * x.queries + t)] =
              sw::host::attention_dot<float>(d.at(b, i, t), out.at(b, i, t), x.value_size);
      sw::host::attend_group_back<float>(x, g, b, h);
    }
  return r;
}

// Blocks on a device, the scratch as large as the records say and followed by bytes that nobody may write.
template <class T>
class blocks {
 public:
  blocks(const problem& p, const operands<T>& of)
      : p_(p),
        q_(of.q.size() * sizeof(T)),
        k_(of.k.size() * sizeof(T)),
        v_(of.v.size() * sizeof(T)),
        dout_(of.dout.size() * sizeof(T)),
        out_(of.dout.size() * sizeof(T)),
        dq_(of.q.size() * sizeof(T)),
        dk_(of.k.size() * sizeof(T)),
        dv_(of.v.size() * sizeof(T)),
        lse_(p.queries(1) * 4),
        delta_(p.queries(1) * 4),
        bias_(of.bias.size() * sizeof(T)),
        key_(of.key.size() * sizeof(T)),
        mask_(of.mask.size() * 4),
        documents_(of.documents.size() * 4),
        scratch_bytes_(static_cast<std::size_t>(sw::operations::attention_library_adjoint_bytes(p.e) +
                                                sw::operations::attention_projection_bytes(p.e))),
        scratch_(scratch_bytes_ + guard) {
    put(q_, of.q);
    put(k_, of.k);
    put(v_, of.v);
    put(dout_, of.dout);
    more_ = {put(bias_, of.bias), put(key_, of.key), put(mask_, of.mask), put(documents_, of.documents)};
    cu::check(cudaMemset(scratch_.data(), 0xA5, scratch_bytes_ + guard), "cudaMemset");
    forget();
  }
  sw::host::attention_call<T, float> call() const { return call_of(p_, as(q_), as(k_), as(v_), more_); }
  T* out() const { return as(out_); }
  float* lse() const { return reinterpret_cast<float*>(lse_.data()); }
  float* delta() const { return reinterpret_cast<float*>(delta_.data()); }
  void* scratch() const { return scratch_.data(); }
  sw::host::attention_gradients<T, float> gradients() const {
    const auto x = call();
    sw::host::attention_gradients<T, float> g;
    g.lse = lse();
    g.delta = delta();
    g.dout = {as(dout_), x.a, x.heads, x.queries, x.value_size};
    g.dq = {as(dq_), x.a, x.heads, x.queries, x.size};
    g.dk = {as(dk_), x.a, x.key_heads, x.keys, x.size};
    g.dv = {as(dv_), x.a, x.key_heads, x.keys, x.value_size};
    return g;
  }
  // delta of what is in out now.
  void multiply(cudaStream_t stream) const {
    const auto x = call();
    kernels::multiply_rows<float>(gradients().dout,
                                  sw::host::attention_block<const T>(out(), x.a, x.heads, x.queries, x.value_size), delta(),
                                  x.batch, x.heads, x.queries, x.value_size, stream);
  }
  // No results any more, so that those of an earlier run are not taken for new ones.
  void forget() const {
    for (const cu::device_memory* m : {&out_, &dq_, &dk_, &dv_})
      cu::check(cudaMemset(m->data(), 0xFF, size(*m)), "cudaMemset");
    cu::check(cudaMemset(lse_.data(), 0xFF, p_.queries(1) * 4), "cudaMemset");
  }
  outcome results() const {
    cu::check(cudaDeviceSynchronize(), "cudaDeviceSynchronize");
    outcome r;
    r.out = get(out_, p_.queries(p_.e.value_size));
    r.dq = get(dq_, p_.queries(p_.e.size));
    r.dk = get(dk_, p_.keys(p_.e.size));
    r.dv = get(dv_, p_.keys(p_.e.value_size));
    r.lse.resize(p_.queries(1));
    cu::check(cudaMemcpy(r.lse.data(), lse_.data(), r.lse.size() * 4, cudaMemcpyDeviceToHost), "cudaMemcpy");
    std::vector<unsigned char> behind(guard);
    cu::check(cudaMemcpy(behind.data(), scratch_.data() + scratch_bytes_, guard, cudaMemcpyDeviceToHost), "cudaMemcpy");
    for (const unsigned char b : behind) REQUIRE(b == 0xA5);
    return r;
  }

 private:
  static constexpr std::size_t guard = 4096;
  static T* as(const cu::device_memory& m) { return reinterpret_cast<T*>(m.data()); }
  template <class E>
  static const E* put(const cu::device_memory& to, const std::vector<E>& v) {
    if (v.empty()) return nullptr;
    cu::check(cudaMemcpy(to.data(), v.data(), v.size() * sizeof(E), cudaMemcpyHostToDevice), "cudaMemcpy");
    return reinterpret_cast<const E*>(to.data());
  }
  static std::vector<float> get(const cu::device_memory& from, std::size_t n) {
    std::vector<T> v(n);
    cu::check(cudaMemcpy(v.data(), from.data(), n * sizeof(T), cudaMemcpyDeviceToHost), "cudaMemcpy");
    return floats(v);
  }
  std::size_t size(const cu::device_memory& m) const {
    return sizeof(T) * (&m == &out_  ? p_.queries(p_.e.value_size)
                        : &m == &dq_ ? p_.queries(p_.e.size)
                        : &m == &dk_ ? p_.keys(p_.e.size)
                                     : p_.keys(p_.e.value_size));
  }

  problem p_;
  cu::device_memory q_, k_, v_, dout_, out_, dq_, dk_, dv_, lse_, delta_, bias_, key_, mask_, documents_;
  further_operands<T> more_;
  std::size_t scratch_bytes_;
  cu::device_memory scratch_;
};

// In their bits, but for those of what is no number.
inline bool are_equal(const std::vector<float>& a, const std::vector<float>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](float x, float y) { return x == y || (std::isnan(x) && std::isnan(y)); });
}
inline bool are_equal(const outcome& a, const outcome& b) {
  return are_equal(a.out, b.out) && are_equal(a.lse, b.lse) && are_equal(a.dq, b.dq) && are_equal(a.dk, b.dk) &&
         are_equal(a.dv, b.dv);
}

// Law: what a device gives is what the host gives in float, but for rounding to two bytes (1/256 of bfloat16), of weights and of the
// result that delta is taken from, too. rounding: of factors, in units of bfloat16's; least: as above.
inline void check_alike(const outcome& device, const outcome& host, double rounding = 1, double least = 1e-5) {
  CHECK(difference(device.out, host.out) < 0.02 * rounding);
  CHECK(difference(device.lse, host.lse) < 1e-3 * rounding);
  CHECK(difference(device.dq, host.dq, least) < 0.05 * rounding);
  CHECK(difference(device.dk, host.dk, least) < 0.05 * rounding);
  CHECK(difference(device.dv, host.dv) < 0.05 * rounding);
}

template <class T>
std::string text_of(const problem& p) {
  cu::attention_request r;
  r.type = sw::dtype_v<T>;
  r.extents = p.e;
  r.causal = p.causal;
  r.window = p.window;
  r.first_query = p.first_query;
  r.biased = (p.further & ~static_cast<int>(sw::attention_operand::key)) != 0;
  r.dropped = p.has(sw::attention_operand::key);
  return cu::text_of(r) + (p.layout == 0 ? ", heads before times" : ", times before heads");
}

// batch, heads, heads of keys, queries, keys, size, size of values: whole tiles and none, groups, queries cut from a longer text.
inline const std::vector<problem>& problems() {
  static const std::vector<problem> all{
      {{2, 3, 3, 128, 128, 64, 64}},
      {{2, 3, 3, 128, 128, 64, 64}, 1},
      {{2, 3, 3, 128, 128, 64, 64}, 1, false},
      {{3, 5, 5, 77, 77, 64, 64}, 1},
      {{2, 4, 4, 77, 130, 64, 64}, 0, false},
      {{2, 4, 2, 130, 77, 64, 64}, 1},
      {{2, 8, 2, 100, 100, 128, 128}, 1},
      {{1, 4, 1, 65, 200, 128, 64}, 0, false},
      {{2, 4, 4, 200, 200, 64, 64}, 1, true, 50},
      {{2, 4, 4, 100, 357, 64, 64}, 0, true, 0, 257},
      {{2, 4, 2, 100, 357, 64, 64}, 1, true, 0, 100},
      {{2, 4, 4, 100, 357, 64, 64}, 0, true, 0, 100},
      {{1, 2, 2, 64, 300, 64, 64}, 1, true, 0, 0},
      {{2, 2, 2, 96, 96, 40, 40}, 1},
  };
  return all;
}

}  // namespace attention_test
