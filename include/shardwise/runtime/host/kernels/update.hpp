// SPDX-License-Identifier: Apache-2.0
// Optimizer updates, in place on parameter and states.
#pragma once

#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/kernels/kernel.hpp>

namespace shardwise::host {

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
