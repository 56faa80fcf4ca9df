// SPDX-License-Identifier: Apache-2.0
// Functions of the elements at one place on the host, broadcast from the right; comparisons, choices by a mask, dropout.
#pragma once

#include <limits>
#include <stdexcept>
#include <string>

#include <shardwise/operations/pointwise/formulas.hpp>
#include <shardwise/runtime/host/copy_block.hpp>
#include <shardwise/runtime/host/draw.hpp>
#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/kernel.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

template <class T, class F>
constexpr void map1(const call& c, const operands<T>& q, F f) {
  const layout* const in[1] = {&c.l[0]};
  const walk<2> w = broadcast_walk<2>(c.l[result], in);
  T* const o = q.p[result];
  const T* const x = q.p[0];
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    T* const oo = o + off[0];
    const T* const xx = x + off[1];
    if (s[0] == 1 && s[1] == 1) {
      // f = f: in constants, nvcc 13 gives a closure inside a plain copy capture wrong values
      independent_loop<T>(n, [=, f = f](std::int64_t i) { oo[i] = f(xx[i]); });
    } else {
      plain_loop(n, [&](std::int64_t i) { oo[i * s[0]] = f(xx[i * s[1]]); });
    }
  });
}

// A copy in another order of the dims.
template <class T>
constexpr void copy(const call& c, const operands<T>& q) {
  const layout* const in[1] = {&c.l[0]};
  copy_walk<T>(broadcast_walk<2>(c.l[result], in), q.p[0], q.p[result]);
}

template <class T, class F>
constexpr void map2(const call& c, const operands<T>& q, F f) {
  const layout* const in[2] = {&c.l[0], &c.l[1]};
  const walk<3> w = broadcast_walk<3>(c.l[result], in);
  T* const o = q.p[result];
  const T* const x = q.p[0];
  const T* const y = q.p[1];
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    T* const oo = o + off[0];
    const T* const xx = x + off[1];
    const T* const yy = y + off[2];
    if (s[0] == 1 && s[1] == 1 && s[2] == 1) {
      independent_loop<T>(n, [=, f = f](std::int64_t i) { oo[i] = f(xx[i], yy[i]); });
    } else {
      plain_loop(n, [&](std::int64_t i) { oo[i * s[0]] = f(xx[i * s[1]], yy[i * s[2]]); });
    }
  });
}

}  // namespace detail

// One element of a pointwise operation on this machine; f is the operation's real parameter, already rounded to T.
template <op_code Op, class T, class... X>
constexpr auto element(T f, X... x) {
  return operations::element<Op>::template value<math<T>, T>(f, x...);
}

// The kernel that follows from the formula.
template <op_code Op>
struct map_kernel {
  static constexpr cut_kind cut = cut_kind::places;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const T f = math<T>::from(c.f);
    if constexpr (Op == op_code::contiguous) detail::copy<T>(c, q);
    else if constexpr (operations::element<Op>::arity == 1) detail::map1<T>(c, q, [=](T x) { return element<Op>(f, x); });
    else detail::map2<T>(c, q, [=](T x, T y) { return element<Op>(f, x, y); });
  }
};

#define SHARDWISE_X(name, ...) \
  template <>                  \
  struct kernel<op_code::name> : map_kernel<op_code::name> {};
SHARDWISE_FORMULAS1(SHARDWISE_X)
SHARDWISE_FORMULAS2(SHARDWISE_X)
#undef SHARDWISE_X

// min(1, max_norm / (sqrt(sum of squares) + 1e-6)), as torch.nn.utils.clip_grad_norm_: of a NaN, NaN.
template <>
struct kernel<op_code::clip_factor> {
  template <class T>
  static constexpr void run(const call&, const operands<T>& q, const step_env& env) {
    using m = math<T>;
    const T ratio = m::from(env.max_norm) / (m::sqrt(q.p[0][0]) + m::from(1e-6));
    q.p[result][0] = m::less(T(1), ratio) ? T(1) : ratio;
  }
};

namespace detail {

// out[i] = f(i-th offsets of the operands); operand K of the walk is input K-1.
template <int K, class F>
constexpr void each_offset(const call& c, F&& f) {
  const layout* in[K - 1]{};
  for (int k = 0; k < K - 1; ++k) in[k] = &c.l[k];
  walk<K> w;
  const layout& out = c.l[result];
  for (int d = 0; d < out.rank; ++d) {
    std::int64_t s[K]{};
    s[0] = out.str[d];
    for (int k = 1; k < K; ++k) s[k] = broadcast_stride(*in[k - 1], out.rank, d, out.global);
    w.push(out.ext[d], s);
  }
  w.merge();
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    std::int64_t at[K]{};
    for (int k = 0; k < K; ++k) at[k] = off[k];
    for (std::int64_t i = 0; i < n; ++i) {
      f(at);
      for (int k = 0; k < K; ++k) at[k] += s[k];
    }
  });
}

}  // namespace detail

#define SHARDWISE_X(name, ...)                                                                   \
  template <>                                                                                    \
  struct kernel<op_code::name> {                                                                 \
    static constexpr cut_kind cut = cut_kind::places;                                            \
    template <class T>                                                                           \
    static constexpr void run(const call& c, const operands<T>& q, const step_env&) {            \
      detail::each_offset<3>(c, [&](const std::int64_t* at) {                                    \
        q.index_out[at[0]] = element<op_code::name>(T(0), q.p[0][at[1]], q.p[1][at[2]]) ? 1 : 0; \
      });                                                                                        \
    }                                                                                            \
  };
SHARDWISE_COMPARISONS(SHARDWISE_X)
#undef SHARDWISE_X

template <>
struct kernel<op_code::where> {
  static constexpr cut_kind cut = cut_kind::places;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::each_offset<4>(
        c, [&](const std::int64_t* at) { q.p[result][at[0]] = q.index[at[1]] != 0 ? q.p[1][at[2]] : q.p[2][at[3]]; });
  }
};

template <>
struct kernel<op_code::mask_keep> {
  static constexpr cut_kind cut = cut_kind::places;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const bool zero_where = attributes_of<mask_keep_attributes>(c.a).where_zero != 0;
    detail::each_offset<3>(
        c, [&](const std::int64_t* at) { q.p[result][at[0]] = (q.index[at[2]] != 0) == zero_where ? T(0) : q.p[0][at[1]]; });
  }
};

// Conversions between element types: to fewer digits rounded to nearest, ties to even; to an integer towards zero; to bool whether
// it is not zero, beyond its range to the nearest end, of a NaN to 0; int64 to int32 what is out of range throws, since it would be another id. Numbers of a proof stay what they are.
namespace detail {
[[noreturn]] inline void refuse_narrowing(std::int64_t x) {
  throw std::out_of_range(
      "shardwise: cast: the int64 " + std::to_string(x) +
      " is no int32; ids, labels and positions are from -2147483648 to 2147483647: keep such numbers in int64");
}
// Towards zero; beyond the type's range its nearest end, of a NaN 0.
template <class To>
constexpr To truncated(double x) {
  using range = std::numeric_limits<To>;
  if (!(x == x)) return To(0);
  if (x <= static_cast<double>(range::min())) return range::min();
  if (x >= static_cast<double>(range::max())) return range::max();
  return static_cast<To>(x);
}
template <class To, class From>
constexpr To converted(From x) {
  if constexpr (std::is_same_v<To, bool>) {
    return !(x == From(0));
  } else if constexpr (std::is_same_v<To, std::int32_t> && std::is_same_v<From, std::int64_t>) {
    if (x < -2147483647 - 1 || x > 2147483647) refuse_narrowing(x);
    return static_cast<To>(x);
  } else if constexpr (std::is_integral_v<To> && is_floating_element<From>) {
    return truncated<To>(static_cast<double>(x));
  } else {
    return static_cast<To>(static_cast<computed_in<From>>(x));
  }
}
template <class To, class From>
void convert(const call& c, To* to, const From* from) {
  const layout* const in[1] = {&c.l[0]};
  broadcast_walk<2>(c.l[result], in).each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    for (std::int64_t i = 0; i < n; ++i) to[off[0] + i * s[0]] = converted<To>(from[off[1] + i * s[1]]);
  });
}
}  // namespace detail
template <>
struct kernel<op_code::cast> {
  static constexpr cut_kind cut = cut_kind::places;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    if constexpr (!shardwise::detail::is_element<T>) {
      detail::map1<T>(c, q, [](T x) { return x; });
    } else {
      const void* const x = c.p[0];
      switch (c.type[0]) {
        case dtype::f32: return detail::convert(c, q.p[result], static_cast<const float*>(x));
        case dtype::f64: return detail::convert(c, q.p[result], static_cast<const double*>(x));
        case dtype::i32: return detail::convert(c, q.p[result], static_cast<const std::int32_t*>(x));
        case dtype::bf16: return detail::convert(c, q.p[result], static_cast<const bfloat16*>(x));
        case dtype::f16: return detail::convert(c, q.p[result], static_cast<const float16*>(x));
        case dtype::i64: return detail::convert(c, q.p[result], static_cast<const std::int64_t*>(x));
        case dtype::boolean: return detail::convert(c, q.p[result], static_cast<const bool*>(x));
      }
    }
  }
};

// A product, also where it is dropped: a NaN stays one, as in PyTorch.
template <>
struct kernel<op_code::dropout> {
  static constexpr cut_kind cut = cut_kind::drawn;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const T keep = T(1) / math<T>::from(1 - c.f);
    detail::each_draw(c, c.l[0], env, [&](std::int64_t i, std::int64_t from, const philox_words& w) {
      q.p[result][i] = static_cast<T>(q.p[0][from] * (unit_32(w) < c.f ? T(0) : keep));
    });
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
