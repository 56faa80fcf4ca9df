// SPDX-License-Identifier: Apache-2.0
// Attention a query at a time, for constants, exact integers and operands that are not finite; and what all kernels know of a call:
// which key a query sees, its bias, whether its weight is dropped.
#pragma once

#include <shardwise/operations/attention/record.hpp>
#include <shardwise/runtime/host/custom.hpp>
#include <shardwise/runtime/host/row_exponentials.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/support/philox.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// A dense block of four dims by (batch, head, time); its last dim lies side by side.
template <class T>
struct attention_block {
  T* data = nullptr;
  std::int64_t batch = 0, head = 0, time = 0;  // strides

  constexpr attention_block() = default;
  constexpr attention_block(T* p, const attention_attributes& a, std::int64_t heads, std::int64_t times, std::int64_t size)
      : data(p),
        batch(heads * times * size),
        head(a.layout == 0 ? times * size : size),
        time(a.layout == 0 ? size : heads * size) {}
  constexpr T* at(std::int64_t b, std::int64_t h, std::int64_t t) const { return data + b * batch + h * head + t * time; }
};

// What is broadcast to (batch, heads, queries, keys).
template <class T>
struct attention_broadcast {
  const T* data = nullptr;
  std::int64_t stride[4] = {0, 0, 0, 0};

  constexpr explicit operator bool() const { return data != nullptr; }
  constexpr const T* row(std::int64_t b, std::int64_t h, std::int64_t i) const {
    return data + b * stride[0] + h * stride[1] + i * stride[2];
  }
};

// One rank's blocks of a call and where they lie in the whole. Times are counted in the whole: block row i is query first_query + i,
// and all keys are there. Storage T, sums in Sum.
template <class T, class Sum = T>
struct attention_call {
  attention_attributes a{};
  std::int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, size = 0, value_size = 0;
  std::int64_t group = 1;  // heads of q for each of k
  interval groups{};       // of the batch's heads of k, counted through: those to compute
  std::int64_t first_batch = 0, first_head = 0, first_query = 0, whole_heads = 0, whole_queries = 0;
  Sum scale{};
  attention_block<const T> q, k, v;
  attention_broadcast<T> bias;
  attention_broadcast<std::int32_t> mask;
  const std::int32_t* documents = nullptr;
  const T* key = nullptr;  // of the drops

  // The keys that query i (of the block) may see by its place.
  constexpr std::int64_t first_key(std::int64_t i) const {
    const std::int64_t first = first_query + i - a.window + 1;
    return a.window > 0 && first > 0 ? (first < keys ? first : keys) : 0;
  }
  constexpr std::int64_t end_key(std::int64_t i) const {
    const std::int64_t end = first_query + i + 1;
    return (a.causal != 0 || a.window > 0) && end < keys ? end : keys;
  }
  constexpr bool is_marked() const { return mask || documents; }
  // Whether it does see key j of those.
  constexpr bool sees(std::int64_t b, std::int64_t h, std::int64_t i, std::int64_t j) const {
    if (mask && mask.row(b, h, i)[j * mask.stride[3]] == 0) return false;
    return !documents || documents[b * keys + first_query + i] == documents[b * keys + j];
  }
};

// The weights that are dropped: of element e of the whole scores, row-major, word e % 4 of block e / 4.
struct attention_drops {
  std::uint64_t key = 0;
  double p = 0;
  std::int64_t block = -1;
  philox_words words{};

  // What element e is multiplied by.
  template <class Sum, class M>
  constexpr Sum factor(std::int64_t e) {
    if (block != e / 4) {
      block = e / 4;
      words = philox(key, static_cast<std::uint32_t>(block), static_cast<std::uint32_t>(block >> 32), 0, 0);
    }
    return words.w[e % 4] * (1.0 / 4294967296.0) < p ? Sum(0) : Sum(1) / M::from(1 - p);
  }
};
// 16 bits of each of the call's four numbers.
template <class M, class T>
constexpr attention_drops drops_of(const T* key, double p) {
  attention_drops d;
  d.p = p;
  for (int i = 0; i < operations::attention_key_extent; ++i)
    d.key = d.key << 16 ^ static_cast<std::uint64_t>(M::number(key[i]) * 65536.0);
  return d;
}
// The number of the first weight of query i.
template <class T, class Sum>
constexpr std::int64_t first_weight(const attention_call<T, Sum>& x, std::int64_t b, std::int64_t h, std::int64_t i) {
  return (((x.first_batch + b) * x.whole_heads + x.first_head + h) * x.whole_queries + x.first_query + i) * x.keys;
}

// `first`: of the operands that are not always there.
template <class T, class Sum = T>
constexpr attention_call<T, Sum> attention_call_of(const kernel_arguments<T>& k, int first) {
  attention_call<T, Sum> x;
  x.a = k.template attributes<attention_attributes>();
  const int h = x.a.heads(), t = x.a.time();
  x.batch = k.extent(0, 0);
  x.heads = k.extent(0, h);
  x.key_heads = k.extent(1, h);
  x.queries = k.extent(0, t);
  x.keys = k.extent(1, t);
  x.size = k.extent(0, 3);
  x.value_size = k.extent(2, 3);
  x.group = x.key_heads > 0 ? x.heads / x.key_heads : 1;
  x.groups = k.share(x.batch * x.key_heads);
  x.first_batch = k.origin(0, 0);
  x.first_head = k.origin(0, h);
  x.first_query = k.origin(0, t);
  x.whole_heads = k.whole_extent(0, h);
  x.whole_queries = k.whole_extent(0, t);
  x.scale = math<Sum>::from(k.number());
  x.q = {k.in(0), x.a, x.heads, x.queries, x.size};
  x.k = {k.in(1), x.a, x.key_heads, x.keys, x.size};
  x.v = {k.in(2), x.a, x.key_heads, x.keys, x.value_size};
  const operations::attention_places at(x.a, first);
  const auto strides = [&](int operand, std::int64_t* to) {
    std::int64_t step = 1;
    for (int d = k.rank(operand) - 1; d >= 0; --d) {
      to[4 - k.rank(operand) + d] = k.whole_extent(operand, d) == 1 ? 0 : step;
      step *= k.extent(operand, d);
    }
  };
  if (at.bias >= 0) {
    x.bias.data = k.in(at.bias);
    strides(at.bias, x.bias.stride);
  }
  if (at.mask >= 0) {
    x.mask.data = k.index();
    strides(at.mask, x.mask.stride);
  }
  if (at.documents >= 0) x.documents = k.index();
  if (at.key >= 0) x.key = k.in(at.key);
  return x;
}

// The operands and results of the adjoint beside those. Statistics of type L.
template <class T, class L = T>
struct attention_gradients {
  const L *lse = nullptr, *delta = nullptr;  // (batch, heads, queries)
  attention_block<const T> dout;
  attention_block<T> dq, dk, dv;  // without data: not wanted

  constexpr attention_gradients() = default;
  template <class Sum>
  constexpr attention_gradients(const kernel_arguments<T>& k, const attention_call<T, Sum>& x)
      : lse(k.in(3)),
        delta(k.in(5)),
        dout(k.in(4), x.a, x.heads, x.queries, x.value_size),
        dq(k.out(0), x.a, x.heads, x.queries, x.size),
        dk(k.out(1), x.a, x.key_heads, x.keys, x.size),
        dv(k.out(2), x.a, x.key_heads, x.keys, x.value_size) {}
};

// --- plainly ----------------------------------------------------------------------------------------------------------------

template <class Sum, class T>
constexpr Sum attention_dot(const T* x, const T* y, std::int64_t n) {
  Sum s = Sum(0);
  for (std::int64_t i = 0; i < n; ++i) s = s + static_cast<Sum>(x[i]) * static_cast<Sum>(y[i]);
  return s;
}

template <class Sum, class T>
constexpr Sum attention_score(const attention_call<T, Sum>& x, std::int64_t b, std::int64_t h, std::int64_t i,
                              std::int64_t j) {
  const Sum s = x.scale * attention_dot<Sum>(x.q.at(b, h, i), x.k.at(b, h / x.group, j), x.size);
  return x.bias ? s + static_cast<Sum>(x.bias.row(b, h, i)[j * x.bias.stride[3]]) : s;
}

// One query: its row of out, which is of zeros where it sees no key, and its lse, which is then the lowest number.
template <class Sum, class T>
constexpr void attend_query(const attention_call<T, Sum>& x, std::int64_t b, std::int64_t h, std::int64_t i, T* out,
                            T* lse) {
  using m = math<Sum>;
  const std::int64_t first = x.first_key(i), end = x.end_key(i);
  bool any = false;
  Sum top = m::ordered ? m::lowest() : Sum(0);
  for (std::int64_t j = first; j < end; ++j) {
    if (!x.sees(b, h, i, j)) continue;
    any = true;
    if constexpr (m::ordered) top = m::max(top, attention_score<Sum>(x, b, h, i, j));
  }
  if constexpr (m::ordered) top = detail::finite_or_zero(top);
  Sum total = Sum(0);
  for (std::int64_t j = first; j < end; ++j)
    if (x.sees(b, h, i, j)) total = total + m::exp(attention_score<Sum>(x, b, h, i, j) - top);
  if constexpr (m::ordered) any = any && !(total == Sum(0));
  *lse = static_cast<T>(!any ? (m::ordered ? m::lowest() : Sum(0)) : top + m::log(total));
  attention_drops drops;
  if (x.key) drops = drops_of<math<T>>(x.key, x.a.dropout);
  for (std::int64_t c = 0; c < x.value_size; ++c) {
    Sum sum = Sum(0);
    for (std::int64_t j = first; any && j < end; ++j) {
      if (!x.sees(b, h, i, j)) continue;
      Sum p = m::exp(attention_score<Sum>(x, b, h, i, j) - top);
      if (x.key) p = p * drops.template factor<Sum, m>(first_weight(x, b, h, i) + j);
      sum = sum + p * static_cast<Sum>(x.v.at(b, h / x.group, j)[c]);
    }
    out[c] = static_cast<T>(any ? sum / total : Sum(0));
  }
}

// What one query adds to dk and dv of its head, and its row of dq.
template <class Sum, class T>
constexpr void attend_query_back(const attention_call<T, Sum>& x, const attention_gradients<T>& g, std::int64_t b,
                                 std::int64_t h, std::int64_t i) {
  using m = math<Sum>;
  const std::int64_t row = (b * x.heads + h) * x.queries + i, kh = h / x.group;
  const Sum lse = static_cast<Sum>(g.lse[row]), delta = static_cast<Sum>(g.delta[row]);
  if (g.dq.data)
    for (std::int64_t c = 0; c < x.size; ++c) g.dq.at(b, h, i)[c] = T(0);
  if (m::ordered && lse == m::lowest()) return;  // it sees nothing
  attention_drops drops;
  if (x.key) drops = drops_of<math<T>>(x.key, x.a.dropout);
  for (std::int64_t j = x.first_key(i); j < x.end_key(i); ++j) {
    if (!x.sees(b, h, i, j)) continue;
    const Sum p = m::exp(attention_score<Sum>(x, b, h, i, j) - lse);
    const Sum kept = x.key ? drops.template factor<Sum, m>(first_weight(x, b, h, i) + j) : Sum(1);
    const Sum ds = p * (attention_dot<Sum>(g.dout.at(b, h, i), x.v.at(b, kh, j), x.value_size) * kept - delta) * x.scale;
    const auto add = [](T* to, Sum factor, const T* of, std::int64_t n) {
      for (std::int64_t c = 0; c < n; ++c)
        to[c] = static_cast<T>(static_cast<Sum>(to[c]) + factor * static_cast<Sum>(of[c]));
    };
    if (g.dq.data) add(g.dq.at(b, h, i), ds, x.k.at(b, kh, j), x.size);
    if (g.dk.data) add(g.dk.at(b, kh, j), ds, x.q.at(b, h, i), x.size);
    if (g.dv.data) add(g.dv.at(b, kh, j), p * kept, g.dout.at(b, h, i), x.value_size);
  }
}

template <class T>
constexpr void clear_attention_keys(const attention_block<T>& to, std::int64_t b, std::int64_t h, std::int64_t keys,
                                    std::int64_t size) {
  for (std::int64_t j = 0; to.data && j < keys; ++j)
    for (std::int64_t c = 0; c < size; ++c) to.at(b, h, j)[c] = T(0);
}

// f(batch, head of k) for what a call is to compute.
template <class T, class Sum, class F>
constexpr void each_group(const attention_call<T, Sum>& x, const F& f) {
  for (std::int64_t i = x.groups.begin; i < x.groups.begin + x.groups.size; ++i) f(i / x.key_heads, i % x.key_heads);
}
// The heads of q that read head kh of k.
template <class Sum, class T>
constexpr void attend_group(const attention_call<T, Sum>& x, std::int64_t b, std::int64_t kh, const attention_block<T>& out,
                            T* lse) {
  for (std::int64_t h = kh * x.group; h < (kh + 1) * x.group; ++h)
    for (std::int64_t i = 0; i < x.queries; ++i) {
      T unread{};
      attend_query<Sum>(x, b, h, i, out.at(b, h, i), lse ? lse + (b * x.heads + h) * x.queries + i : &unread);
    }
}
template <class Sum, class T>
constexpr void attend_group_back(const attention_call<T, Sum>& x, const attention_gradients<T>& g, std::int64_t b,
                                 std::int64_t kh) {
  clear_attention_keys(g.dk, b, kh, x.keys, x.size);
  clear_attention_keys(g.dv, b, kh, x.keys, x.value_size);
  for (std::int64_t h = kh * x.group; h < (kh + 1) * x.group; ++h)
    for (std::int64_t i = 0; i < x.queries; ++i) attend_query_back<Sum>(x, g, b, h, i);
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
