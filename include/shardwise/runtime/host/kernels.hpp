// SPDX-License-Identifier: Apache-2.0
// Host kernels: one struct per operation over local blocks. The rule proofs run this very code on exact integers.
#pragma once

#include <cmath>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <shardwise/runtime/call.hpp>
#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/loops.hpp>
#include <shardwise/runtime/host/math.hpp>
#include <shardwise/support/config.hpp>
#include <shardwise/support/philox.hpp>

namespace shardwise::host {

using runtime::call;
using runtime::result;
using runtime::step_env;

// Typed pointers of a call; integer operands are read through `index`.
template <class T>
struct operands {
  T* p[max_inputs + 1]{};
  const std::int32_t* index = nullptr;
};

template <op_code Op>
struct kernel;

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
      for (std::int64_t i = 0; i < n; ++i) oo[i * s[0]] = f(xx[i * s[1]]);
    }
  });
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
      for (std::int64_t i = 0; i < n; ++i) oo[i * s[0]] = f(xx[i * s[1]], yy[i * s[2]]);
    }
  });
}

template <class T>
constexpr T half() {
  return T(1) / T(2);
}

// Global row-major index of the element at local position `at` of a block.
constexpr std::int64_t global_index(const layout& l, const std::int64_t* at) {
  std::int64_t g = 0;
  for (int d = 0; d < l.rank; ++d) g = g * l.global[d] + l.origin[d] + at[d];
  return g;
}

}  // namespace detail

#define SHARDWISE_MAP1(name, expression)                                              \
  template <>                                                                         \
  struct kernel<op_code::name> {                                                      \
    template <class T>                                                                \
    static constexpr void run(const call& c, const operands<T>& q, const step_env&) { \
      using m [[maybe_unused]] = math<T>;                                             \
      [[maybe_unused]] const T f = m::from(c.f);                                      \
      detail::map1<T>(c, q, [=](T x) { return static_cast<T>(expression); });         \
    }                                                                                 \
  };
#define SHARDWISE_MAP2(name, expression)                                              \
  template <>                                                                         \
  struct kernel<op_code::name> {                                                      \
    template <class T>                                                                \
    static constexpr void run(const call& c, const operands<T>& q, const step_env&) { \
      using m [[maybe_unused]] = math<T>;                                             \
      detail::map2<T>(c, q, [=](T x, T y) { return static_cast<T>(expression); });    \
    }                                                                                 \
  };

SHARDWISE_MAP2(add, x + y)
SHARDWISE_MAP2(sub, x - y)
SHARDWISE_MAP2(mul, x* y)
SHARDWISE_MAP1(scale, x* f)
SHARDWISE_MAP1(contiguous, x)
SHARDWISE_MAP1(relu, m::positive(x) ? x : T(0))
SHARDWISE_MAP1(tanh, m::tanh(x))
SHARDWISE_MAP1(gelu_tanh, detail::half<T>() * x *
                              (T(1) + m::tanh(m::from(0.7978845608028654) * (x + m::from(0.044715) * x * x * x))))
SHARDWISE_MAP1(gelu_erf, detail::half<T>() * x * (T(1) + m::erf(m::from(0.7071067811865476) * x)))
// clip_factor: min(1, max_norm / (sqrt(sum of squares) + 1e-6)), as torch.nn.utils.clip_grad_norm_
// second operand: relu, gelu: the input; tanh: the output
SHARDWISE_MAP2(relu_bwd, m::positive(y) ? x : T(0))
SHARDWISE_MAP2(tanh_bwd, x*(T(1) - y * y))
#undef SHARDWISE_MAP1
#undef SHARDWISE_MAP2

template <>
struct kernel<op_code::clip_factor> {
  template <class T>
  static constexpr void run(const call&, const operands<T>& q, const step_env& env) {
    using m = math<T>;
    const T ratio = m::from(env.max_norm) / (m::sqrt(q.p[0][0]) + m::from(1e-6));
    q.p[result][0] = m::positive(T(1) - ratio) ? ratio : T(1);
  }
};

template <>
struct kernel<op_code::gelu_tanh_bwd> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    detail::map2<T>(c, q, [](T g, T x) {
      const T k = m::from(0.7978845608028654), b = m::from(0.044715);
      const T t = m::tanh(k * (x + b * x * x * x));
      const T inner = k * (T(1) + T(3) * b * x * x);
      return static_cast<T>(g * detail::half<T>() * (T(1) + t + x * (T(1) - t * t) * inner));
    });
  }
};

template <>
struct kernel<op_code::gelu_erf_bwd> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    detail::map2<T>(c, q, [](T g, T x) {
      const T phi = detail::half<T>() * (T(1) + m::erf(m::from(0.7071067811865476) * x));
      const T density = m::from(0.3989422804014327) * m::exp(T(0) - detail::half<T>() * x * x);
      return static_cast<T>(g * (phi + x * density));
    });
  }
};

template <>
struct kernel<op_code::fill> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const std::int64_t n = c.l[result].numel();
    for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = math<T>::from(c.f);
  }
};

// --- sums -----------------------------------------------------------------------------------------------------------

namespace detail {
// Strides with which the summed result follows the operand's dims (0 along summed dims).
constexpr void sum_strides(const op_attr& a, const layout& x, const layout& out, std::int64_t* s) {
  int k = 0;
  for (int d = 0; d < x.rank; ++d) {
    const bool summed = (a.v[0] >> d) & 1, kept = (a.v[1] >> d) & 1;
    s[d] = summed ? 0 : out.str[k];
    if (!summed || kept) ++k;
  }
}

constexpr std::int64_t summed_count(const op_attr& a, const layout& x) {
  std::int64_t n = 1;
  for (int d = 0; d < x.rank; ++d)
    if ((a.v[0] >> d) & 1) n *= x.global[d];
  return n;
}

template <class T, bool Square>
constexpr void sum_into(const call& c, const operands<T>& q) {
  const layout& x = c.l[0];
  const layout& out = c.l[result];
  T* const o = q.p[result];
  const std::int64_t n = out.numel();
  for (std::int64_t i = 0; i < n; ++i) o[i] = T(0);
  std::int64_t so[max_rank]{};
  sum_strides(c.a, x, out, so);
  walk<2> w;
  for (int d = 0; d < x.rank; ++d) {
    const std::int64_t s[2] = {so[d], x.str[d]};
    w.push(x.ext[d], s);
  }
  w.merge();
  using acc = typename math<T>::accumulator;
  w.each_run([&](const std::int64_t* off, std::int64_t count, const std::int64_t* s) {
    T* const oo = o + off[0];
    const T* const xx = q.p[0] + off[1];
    if (s[0] == 0) {
      acc total = acc(0);
      for (std::int64_t i = 0; i < count; ++i) {
        const acc v = static_cast<acc>(xx[i * s[1]]);
        total = total + (Square ? v * v : v);
      }
      *oo = static_cast<T>(static_cast<acc>(*oo) + total);
    } else if (s[0] == 1 && s[1] == 1) {
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < count; ++i) oo[i] = static_cast<T>(oo[i] + (Square ? xx[i] * xx[i] : xx[i]));
    } else {
      for (std::int64_t i = 0; i < count; ++i) {
        const T v = xx[i * s[1]];
        oo[i * s[0]] = static_cast<T>(oo[i * s[0]] + (Square ? v * v : v));
      }
    }
  });
}
}  // namespace detail

template <>
struct kernel<op_code::sum> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::sum_into<T, false>(c, q);
    if (c.a.v[2] == 0) return;
    const T count = math<T>::from_count(detail::summed_count(c.a, c.l[0]));
    const std::int64_t n = c.l[result].numel();
    for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = q.p[result][i] / count;
  }
};

template <>
struct kernel<op_code::sumsq> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    detail::sum_into<T, true>(c, q);
  }
};

// Adjoint of sum: operand 0 is the (smaller) cotangent, spread over the result's summed dims.
template <>
struct kernel<op_code::expand> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& out = c.l[result];
    std::int64_t si[max_rank]{};
    detail::sum_strides(c.a, out, c.l[0], si);
    walk<2> w;
    for (int d = 0; d < out.rank; ++d) {
      const std::int64_t s[2] = {out.str[d], si[d]};
      w.push(out.ext[d], s);
    }
    w.merge();
    const T count = math<T>::from_count(c.a.v[2] ? detail::summed_count(c.a, out) : 1);
    w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
      for (std::int64_t i = 0; i < n; ++i) q.p[result][off[0] + i * s[0]] = q.p[0][off[1] + i * s[1]] / count;
    });
  }
};

// --- rows: softmax, norms, losses -----------------------------------------------------------------------------------

template <>
struct kernel<op_code::softmax> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout& x = c.l[0];
    const layout& o = c.l[result];
    const int last = x.rank - 1;
    const std::int64_t keys = x.ext[last], sx = x.str[last];
    const bool causal = c.a.v[0] != 0;
    const std::int64_t queries = causal ? x.ext[last - 1] : 1, first = causal ? x.origin[last - 1] : 0;
    const layout* const both[2] = {&x, &o};
    std::int64_t row = 0;
    each_row<2>(both, last, [&](const std::int64_t* at) {
      const T* const in = q.p[0] + at[0];
      T* const out = q.p[result] + at[1];
      const std::int64_t visible = causal ? first + row % queries + 1 : keys;
      ++row;
      const std::int64_t n = visible < keys ? visible : keys;
      T top = T(0);
      if constexpr (m::ordered)
        if (n > 0) {
          top = in[0];
          for (std::int64_t i = 1; i < n; ++i) top = m::max(top, in[i * sx]);
        }
      if (sx == 1) {
        independent_loop<T>(n, [=](std::int64_t i) { out[i] = m::exp(in[i] - top); });
      } else {
        for (std::int64_t i = 0; i < n; ++i) out[i] = m::exp(in[i * sx] - top);
      }
      T total = T(0);
      for (std::int64_t i = 0; i < n; ++i) total = total + out[i];
      const T inverse = T(1) / total;
      for (std::int64_t i = 0; i < n; ++i) out[i] = out[i] * inverse;
      for (std::int64_t i = n; i < keys; ++i) out[i] = T(0);
    });
  }
};

// dx = y (dy - sum(dy y)); masked elements have y = 0.
template <>
struct kernel<op_code::softmax_bwd> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s0 = c.l[0].str[last], s1 = c.l[1].str[last];
    each_row<3>(all, last, [&](const std::int64_t* at) {
      const T* const g = q.p[0] + at[0];
      const T* const y = q.p[1] + at[1];
      T* const o = q.p[result] + at[2];
      T dot = T(0);
      for (std::int64_t i = 0; i < n; ++i) dot = dot + g[i * s0] * y[i * s1];
      if (s0 == 1 && s1 == 1) {
        SHARDWISE_IVDEP
        for (std::int64_t i = 0; i < n; ++i) o[i] = y[i] * (g[i] - dot);
      } else {
        for (std::int64_t i = 0; i < n; ++i) o[i] = y[i * s1] * (g[i * s0] - dot);
      }
    });
  }
};

// Layer norm: (mean, 1 / sqrt(variance + eps)); rms norm: (0, 1 / sqrt(mean square + eps)).
template <>
struct kernel<op_code::norm_stats> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    using acc = typename m::accumulator;
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    const acc count = math<acc>::from_count(n), eps = math<acc>::from(c.f);
    const bool rms = c.a.v[0] == 1;
    each_row<2>(both, last, [&](const std::int64_t* at) {
      const T* const x = q.p[0] + at[0];
      T* const o = q.p[result] + at[1];
      acc mean = acc(0);
      if (!rms) {
        for (std::int64_t i = 0; i < n; ++i) mean = mean + static_cast<acc>(x[i * s]);
        mean = mean / count;
      }
      acc square = acc(0);
      for (std::int64_t i = 0; i < n; ++i) {
        const acc d = static_cast<acc>(x[i * s]) - mean;
        square = square + d * d;
      }
      o[0] = static_cast<T>(mean);
      o[1] = static_cast<T>(acc(1) / math<acc>::sqrt(square / count + eps));
    });
  }
};

// (x - mean) * rstd * w (+ b)
template <>
struct kernel<op_code::norm_apply> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last], sw = c.l[2].str[0];
    const bool bias = c.inputs > 3;
    each_row<3>(all, last, [&](const std::int64_t* at) {
      const T* const x = q.p[0] + at[0];
      const T mean = q.p[1][at[1]], rstd = q.p[1][at[1] + c.l[1].str[last]];
      const T* const w = q.p[2];
      T* const o = q.p[result] + at[2];
      if (s == 1 && sw == 1) {
        SHARDWISE_IVDEP
        for (std::int64_t i = 0; i < n; ++i) o[i] = (x[i] - mean) * rstd * w[i];
      } else {
        for (std::int64_t i = 0; i < n; ++i) o[i] = (x[i * s] - mean) * rstd * w[i * sw];
      }
      if (bias) {
        const T* const b = q.p[3];
        const std::int64_t sb = c.l[3].str[0];
        for (std::int64_t i = 0; i < n; ++i) o[i] = o[i] + b[i * sb];
      }
    });
  }
};

// With h = (x - mean) rstd and g = dy w: dx = rstd (g - mean(g) - h mean(g h)); rms norm has no mean(g).
template <>
struct kernel<op_code::norm_dx> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[4] = {&c.l[0], &c.l[1], &c.l[2], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], sg = c.l[0].str[last], sx = c.l[1].str[last], sw = c.l[3].str[0];
    const bool rms = c.a.v[0] == 1;
    const T count = math<T>::from_count(n);
    each_row<4>(all, last, [&](const std::int64_t* at) {
      const T* const dy = q.p[0] + at[0];
      const T* const x = q.p[1] + at[1];
      const T mean = q.p[2][at[2]], rstd = q.p[2][at[2] + c.l[2].str[last]];
      const T* const w = q.p[3];
      T* const o = q.p[result] + at[3];
      T g1 = T(0), gh = T(0);
      for (std::int64_t i = 0; i < n; ++i) {
        const T g = dy[i * sg] * w[i * sw];
        g1 = g1 + g;
        gh = gh + g * ((x[i * sx] - mean) * rstd);
      }
      g1 = rms ? T(0) : g1 / count;
      gh = gh / count;
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) o[i] = rstd * (dy[i * sg] * w[i * sw] - g1 - (x[i * sx] - mean) * rstd * gh);
    });
  }
};

template <>
struct kernel<op_code::norm_dw> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[3] = {&c.l[0], &c.l[1], &c.l[2]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], sg = c.l[0].str[last], sx = c.l[1].str[last];
    T* const o = q.p[result];
    for (std::int64_t i = 0; i < n; ++i) o[i] = T(0);
    each_row<3>(all, last, [&](const std::int64_t* at) {
      const T* const dy = q.p[0] + at[0];
      const T* const x = q.p[1] + at[1];
      const T mean = q.p[2][at[2]], rstd = q.p[2][at[2] + c.l[2].str[last]];
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) o[i] = o[i] + dy[i * sg] * ((x[i * sx] - mean) * rstd);
    });
  }
};

template <>
struct kernel<op_code::lse> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout* const both[2] = {&c.l[0], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    each_row<2>(both, last, [&](const std::int64_t* at) {
      const T* const x = q.p[0] + at[0];
      T top = T(0);
      if constexpr (m::ordered) {
        top = x[0];
        for (std::int64_t i = 1; i < n; ++i) top = m::max(top, x[i * s]);
      }
      T total = T(0);
      for (std::int64_t i = 0; i < n; ++i) total = total + m::exp(x[i * s] - top);
      q.p[result][at[1]] = top + m::log(total);
    });
  }
};

namespace detail {
inline void refuse_index(const char* what, std::int64_t id, std::int64_t limit) {
  throw std::out_of_range(std::string("shardwise: ") + what + ": index " + std::to_string(id) + " is outside 0.." +
                          std::to_string(limit - 1) + "; map the data to that range or enlarge the table");
}
}  // namespace detail

template <>
struct kernel<op_code::nll> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout* const all[4] = {&c.l[0], &c.l[1], &c.l[2], &c.l[result]};
    const int last = c.l[0].rank - 1;
    const std::int64_t n = c.l[0].ext[last], s = c.l[0].str[last];
    each_row<4>(all, last, [&](const std::int64_t* at) {
      const std::int64_t id = q.index[at[2]];
      if (id < 0 || id >= n) detail::refuse_index("cross_entropy target", id, n);
      q.p[result][at[3]] = q.p[1][at[1]] - q.p[0][at[0] + id * s];
    });
  }
};

// operands: cotangent, logits, log-sum-exp, target: dy (softmax - onehot)
template <>
struct kernel<op_code::nll_dx> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    using m = math<T>;
    const layout* const all[5] = {&c.l[1], &c.l[0], &c.l[2], &c.l[3], &c.l[result]};
    const int last = c.l[1].rank - 1;
    const std::int64_t n = c.l[1].ext[last], s = c.l[1].str[last];
    each_row<5>(all, last, [&](const std::int64_t* at) {
      const T* const x = q.p[1] + at[0];
      const T g = q.p[0][at[1]], norm = q.p[2][at[2]];
      T* const o = q.p[result] + at[4];
      if (s == 1) {
        independent_loop<T>(n, [=](std::int64_t i) { o[i] = g * m::exp(x[i] - norm); });
      } else {
        for (std::int64_t i = 0; i < n; ++i) o[i] = g * m::exp(x[i * s] - norm);
      }
      const std::int64_t id = q.index[at[3]];
      o[id] = o[id] - g;
    });
  }
};

// --- indices --------------------------------------------------------------------------------------------------------

template <>
struct kernel<op_code::embedding> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& w = c.l[0];
    const layout* const both[2] = {&c.l[1], &c.l[result]};
    const std::int64_t n = w.ext[1], rows = w.ext[0];
    each_row<2>(both, c.l[1].rank, [&](const std::int64_t* at) {
      const std::int64_t id = q.index[at[0]];
      if (id < 0 || id >= rows) detail::refuse_index("embedding", id, rows);
      const T* const from = q.p[0] + id * w.str[0];
      T* const to = q.p[result] + at[1];
      for (std::int64_t i = 0; i < n; ++i) to[i] = from[i * w.str[1]];
    });
  }
};

template <>
struct kernel<op_code::embedding_dw> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& dy = c.l[0];
    const layout& o = c.l[result];
    const std::int64_t total = o.numel(), n = o.ext[1], s = dy.str[dy.rank - 1];
    for (std::int64_t i = 0; i < total; ++i) q.p[result][i] = T(0);
    const layout* const both[2] = {&c.l[1], &dy};
    each_row<2>(both, c.l[1].rank, [&](const std::int64_t* at) {
      T* const to = q.p[result] + std::int64_t{q.index[at[0]]} * o.str[0];
      const T* const from = q.p[0] + at[1];
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) to[i] = to[i] + from[i * s];
    });
  }
};

// --- blocks ---------------------------------------------------------------------------------------------------------

// Copies the block of `x` that begins at x_begin into that of `o` beginning at o_begin, `ext` elements a dim.
template <class T>
constexpr void copy_block(const T* x, const layout& lx, const std::int64_t* x_begin, T* o, const layout& lo,
                          const std::int64_t* o_begin, const std::int64_t* ext) {
  walk<2> w;
  for (int d = 0; d < lx.rank; ++d) {
    const std::int64_t s[2] = {lo.str[d], lx.str[d]};
    w.push(ext[d], s);
    x += x_begin[d] * lx.str[d];
    o += o_begin[d] * lo.str[d];
  }
  w.merge();
  w.each_run([&](const std::int64_t* off, std::int64_t n, const std::int64_t* s) {
    if (s[0] == 1 && s[1] == 1) {
      SHARDWISE_IVDEP
      for (std::int64_t i = 0; i < n; ++i) o[off[0] + i] = x[off[1] + i];
    } else {
      for (std::int64_t i = 0; i < n; ++i) o[off[0] + i * s[0]] = x[off[1] + i * s[1]];
    }
  });
}

// Adjoint of slice: the operand in a frame of zeros.
template <>
struct kernel<op_code::pad> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const std::int64_t n = c.l[result].numel();
    for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
    std::int64_t zero[max_rank]{}, begin[max_rank]{};
    begin[c.a.v[0]] = c.a.v[1];
    copy_block<T>(q.p[0], c.l[0], zero, q.p[result], c.l[result], begin, c.l[0].ext);
  }
};

// The redistributions that need no peer; the others are the backend's collectives.
template <>
struct kernel<op_code::redistribute> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& x = c.l[0];
    const layout& o = c.l[result];
    const std::int64_t n = o.numel();
    std::int64_t zero[max_rank]{}, begin[max_rank]{};
    if (c.kind == transition::take_chunk) {
      const int d = c.to.dim;
      begin[d] = o.origin[d] - x.origin[d];
      copy_block<T>(q.p[0], x, begin, q.p[result], o, zero, o.ext);
    } else if (c.kind == transition::place_chunk) {
      const int d = c.from.dim;
      for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
      begin[d] = x.origin[d] - o.origin[d];
      copy_block<T>(q.p[0], x, zero, q.p[result], o, begin, x.ext);
    } else if (c.coordinate == 0) {  // to_partial, or a copy
      copy_block<T>(q.p[0], x, zero, q.p[result], o, zero, o.ext);
    } else {
      for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = T(0);
    }
  }
};

// --- randomness -----------------------------------------------------------------------------------------------------

// The mask is a function of (seed, step, site, global element index), so forward and adjoint draw the same one.
template <>
struct kernel<op_code::dropout> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const layout& o = c.l[result];
    const layout& x = c.l[0];
    const T keep = T(1) / math<T>::from(1 - c.f);
    std::int64_t at[max_rank]{};
    const std::int64_t n = o.numel();
    for (std::int64_t i = 0; i < n; ++i) {
      std::int64_t from = 0;
      for (int d = 0; d < o.rank; ++d) from += at[d] * x.str[d];
      const double u =
          philox_uniform(env.seed, static_cast<std::uint32_t>(c.a.v[0]) + 1, static_cast<std::uint32_t>(env.step),
                         static_cast<std::uint64_t>(detail::global_index(o, at)));
      q.p[result][i] = u < c.f ? T(0) : static_cast<T>(q.p[0][from] * keep);
      for (int d = o.rank - 1; d >= 0 && ++at[d] == o.ext[d]; --d) at[d] = 0;
    }
  }
};

// --- optimizers: in place on operand 0 and the states ---------------------------------------------------------------

// operands: parameter, gradient [, momentum buffer] [, clip factor]; torch.optim.SGD with momentum, no dampening.
template <>
struct kernel<op_code::sgd> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const bool clipped = c.a.v[0] != 0, momentum = c.a.v[1] != 0;
    using real = math<T>;
    const T lr = real::from(env.lr), mu = real::from(env.momentum), decay = real::from(env.weight_decay * c.f);
    const T factor = clipped ? *q.p[c.inputs - 1] : T(1);
    const std::int64_t n = c.l[0].numel();
    T* const p = q.p[0];
    const T* const g = q.p[1];
    T* const b = q.p[2];
    for (std::int64_t i = 0; i < n; ++i) {
      T d = g[i] * factor + decay * p[i];
      if (momentum) d = b[i] = mu * b[i] + d;
      p[i] = p[i] - lr * d;
    }
  }
};

// operands: parameter, gradient, first moment, second moment [, clip factor]. v1 = 0: Adam (decay added to the
// gradient); 1: AdamW (decoupled). As torch.optim: bias-corrected, eps outside the root.
template <>
struct kernel<op_code::adam> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const bool clipped = c.a.v[0] != 0, decoupled = c.a.v[1] != 0;
    using real = math<T>;
    const double t = static_cast<double>(env.step);
    const T b1 = real::from(env.beta1), b2 = real::from(env.beta2), eps = real::from(env.eps);
    const T rest1 = real::from(1 - env.beta1), rest2 = real::from(1 - env.beta2);
    const T size = real::from(env.lr / (1 - real::power(env.beta1, t)));
    const T root = real::inverse_root(1 - real::power(env.beta2, t));
    const double wd = env.weight_decay * c.f;
    const T decay = real::from(wd), shrink = decoupled ? real::from(1 - env.lr * wd) : T(1);
    const T factor = clipped ? *q.p[c.inputs - 1] : T(1);
    const std::int64_t n = c.l[0].numel();
    T* const p = q.p[0];
    const T* const gr = q.p[1];
    T* const m = q.p[2];
    T* const v = q.p[3];
    const T coupled = decoupled ? T(0) : decay;
    independent_loop<T>(n, [=](std::int64_t i) {
      const T g = gr[i] * factor + coupled * p[i];
      m[i] = b1 * m[i] + rest1 * g;
      v[i] = b2 * v[i] + rest2 * g * g;
      p[i] = p[i] * shrink - size * m[i] / (real::sqrt(v[i]) * root + eps);
    });
  }
};

}  // namespace shardwise::host
