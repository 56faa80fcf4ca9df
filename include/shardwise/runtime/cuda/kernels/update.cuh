// SPDX-License-Identifier: Apache-2.0
// Optimizer updates, in place on parameter and states; the step's numbers are read from the device's memory.
#pragma once

#include <shardwise/runtime/cuda/kernels/map.cuh>
#include <shardwise/runtime/cuda/kernels/pointwise.cuh>

namespace shardwise::cuda {

namespace detail {

// Parameter, gradient and up to two states, of equal length; a state that is not there is null.
template <class T>
struct update_arrays {
  T* p;
  const T* g;
  T *m, *v;
  const T* clip;  // null: not clipped
};

template <class T, int V, class Step>
__device__ void update_pack(const update_arrays<T>& a, std::int64_t i, const Step& step) {
  using P = pack<T, V>;
  P p = *reinterpret_cast<P*>(a.p + i), m{}, v{};
  const P g = *reinterpret_cast<const P*>(a.g + i);
  if (a.m) m = *reinterpret_cast<P*>(a.m + i);
  if (a.v) v = *reinterpret_cast<P*>(a.v + i);
#pragma unroll
  for (int j = 0; j < V; ++j) step(p.v[j], g.v[j], m.v[j], v.v[j]);
  *reinterpret_cast<P*>(a.p + i) = p;
  if (a.m) *reinterpret_cast<P*>(a.m + i) = m;
  if (a.v) *reinterpret_cast<P*>(a.v + i) = v;
}

// Rule::step is made of the step's numbers once a thread.
template <class T, class Rule, int V>
__global__ void __launch_bounds__(256)
    update_kernel(const update_arrays<T> a, std::int64_t n, const Rule rule, const device_env* env) {
  const typename Rule::step step(rule, *env, a.clip ? *a.clip : T(1));
  const std::int64_t first = std::int64_t{blockIdx.x} * blockDim.x + threadIdx.x,
                     stride = std::int64_t{gridDim.x} * blockDim.x;
  for (std::int64_t i = first; i < n / V; i += stride) update_pack<T, V>(a, i * V, step);
  for (std::int64_t i = n / V * V + first; i < n; i += stride) update_pack<T, 1>(a, i, step);
}

template <class T, class Rule>
void update(op_code op, const update_arrays<T>& a, std::int64_t n, const Rule& rule, context& ctx) {
  if (n == 0) return;
  constexpr int V = vector_of<T>;
  bool packs = true;
  for (const void* p : {static_cast<const void*>(a.p), static_cast<const void*>(a.g), static_cast<const void*>(a.m),
                        static_cast<const void*>(a.v)})
    packs = packs && reinterpret_cast<std::uintptr_t>(p) % 16 == 0;
  if (packs)
    launch(op, &update_kernel<T, Rule, V>, grid_for((n / V + 255) / 256 + 1, ctx), 256, ctx.stream, a, n, rule,
           ctx.env);
  else
    launch(op, &update_kernel<T, Rule, 1>, grid_for((n + 255) / 256, ctx), 256, ctx.stream, a, n, rule, ctx.env);
}

}  // namespace detail

template <class T>
struct sgd_rule {
  double decay;  // the parameter's share of weight_decay
  bool momentum;

  struct step {
    T lr, mu, decay, factor;
    bool momentum;
    __device__ step(const sgd_rule& r, const device_env& e, T clip)
        : lr(static_cast<T>(e.env.lr)),
          mu(static_cast<T>(e.env.momentum)),
          decay(static_cast<T>(e.env.weight_decay * r.decay)),
          factor(clip),
          momentum(r.momentum) {}
    __device__ void operator()(T& p, T g, T& m, T&) const {
      T d = g * factor + decay * p;
      if (momentum) d = m = mu * m + d;
      p = p - lr * d;
    }
  };
};

// operands: parameter, gradient [, momentum buffer] [, clip factor]
template <>
struct kernel<op_code::sgd> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const bool clipped = c.a.v[0] != 0, momentum = c.a.v[1] != 0;
    const detail::update_arrays<T> a{as<T>(c.p[0]), as<T>(c.p[1]), momentum ? as<T>(c.p[2]) : nullptr, nullptr,
                                     clipped ? as<T>(c.p[c.inputs - 1]) : nullptr};
    detail::update(op_code::sgd, a, c.l[0].numel(), sgd_rule<T>{c.f, momentum}, ctx);
  }
};

template <class T>
struct adam_rule {
  double decay;
  bool decoupled;

  struct step {
    T b1, b2, rest1, rest2, eps, size, root, coupled, shrink, factor;
    __device__ step(const adam_rule& r, const device_env& e, T clip)
        : b1(static_cast<T>(e.env.beta1)),
          b2(static_cast<T>(e.env.beta2)),
          rest1(static_cast<T>(1 - e.env.beta1)),
          rest2(static_cast<T>(1 - e.env.beta2)),
          eps(static_cast<T>(e.env.eps)),
          size(static_cast<T>(e.adam_rate)),
          root(static_cast<T>(e.adam_root)),
          coupled(r.decoupled ? T(0) : static_cast<T>(e.env.weight_decay * r.decay)),
          shrink(r.decoupled ? static_cast<T>(1 - e.env.lr * (e.env.weight_decay * r.decay)) : T(1)),
          factor(clip) {}
    __device__ void operator()(T& p, T gradient, T& m, T& v) const {
      const T g = gradient * factor + coupled * p;
      m = b1 * m + rest1 * g;
      v = b2 * v + rest2 * g * g;
      p = p * shrink - size * m / (math<T>::sqrt(v) * root + eps);
    }
  };
};

// operands: parameter, gradient, first moment, second moment [, clip factor]
template <>
struct kernel<op_code::adam> {
  template <class T>
  static void run(const call& c, context& ctx) {
    const bool clipped = c.a.v[0] != 0, decoupled = c.a.v[1] != 0;
    const detail::update_arrays<T> a{as<T>(c.p[0]), as<T>(c.p[1]), as<T>(c.p[2]), as<T>(c.p[3]),
                                     clipped ? as<T>(c.p[c.inputs - 1]) : nullptr};
    detail::update(op_code::adam, a, c.l[0].numel(), adam_rule<T>{c.f, decoupled}, ctx);
  }
};

}  // namespace shardwise::cuda
