// SPDX-License-Identifier: Apache-2.0
// Lion's and Muon's steps, and what options (update_option) make of gradients and states, element by element, once for all devices: PyTorch's rules.
#pragma once

#include <cstdint>

#include <shardwise/operations/pointwise/formulas.hpp>
#include <shardwise/propagation/attributes.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::operations {

// M: the device's mathematics. Env: a step_env, the run's numbers. Products that go into sums are mul_add, which is fused on some
// devices, so that kernels of one device give the same bits.

// What an update takes for its gradient: `factor` times it, which clip_norm and loss scales make, then each element brought into
// [-clip_value, clip_value], then negated where the optimizer maximises. Law: a NaN stays one; without options it is factor g.
template <class M, class T>
struct optioned_gradient {
  T factor, bound;

  template <class Env>
  constexpr optioned_gradient(const Env& env, std::int64_t options, T by)
      : factor((options & maximises) != 0 ? T(0) - by : by),
        bound(M::from((options & clips_values) != 0 ? env.clip_value : __builtin_huge_val())) {}

  constexpr T operator()(T g) const {
    const T x = g * factor, low = T(0) - bound;
    return M::less(bound, x) ? bound : M::less(x, low) ? low : x;
  }
};

// SGD's, with momentum (1, Nesterov's 2) or without. Law of a dampened one: the first step's momentum is the gradient. Number: of the step.
template <class M, class T>
struct sgd_options_step {
  T lr, momentum, kept, share, decay;
  bool has_momentum, nesterov;

  template <class Env>
  constexpr sgd_options_step(const Env& env, std::int64_t options, std::int64_t flavour, double number, double decays)
      : lr(M::from(env.lr)),
        momentum(M::from(env.momentum)),
        kept(M::from((options & dampens) != 0 && !(number > 1) ? 0 : env.momentum)),
        share(M::from((options & dampens) != 0 && number > 1 ? 1 - env.dampening : 1)),
        decay(M::from(env.weight_decay * decays)),
        has_momentum(flavour != 0),
        nesterov(flavour == 2) {}

  constexpr T decayed(T g, T p) const { return M::mul_add(decay, p, g); }
  constexpr T next(T m, T d) const { return M::mul_add(kept, m, share * d); }
  constexpr T direction(T d, T m) const { return nesterov ? M::mul_add(momentum, m, d) : m; }
  constexpr T moved(T p, T d) const { return M::mul_add(T(0) - lr, d, p); }
};

template <class M, class T>
struct lion_step {
  T b1, rest1, b2, rest2, lr, shrink;

  template <class Env>
  constexpr lion_step(const Env& env, double decays)
      : b1(M::from(env.beta1)),
        rest1(M::from(1 - env.beta1)),
        b2(M::from(env.beta2)),
        rest2(M::from(1 - env.beta2)),
        lr(M::from(env.lr)),
        shrink(M::from(1 - env.lr * (env.weight_decay * decays))) {}

  constexpr T moved(T p, T m, T g) const {
    const T direction = element<op_code::sign>::template value<M, T>(T(0), M::mul_add(b1, m, rest1 * g));
    return M::mul_add(p, shrink, T(0) - lr * direction);
  }
  constexpr T next(T m, T g) const { return M::mul_add(b2, m, rest2 * g); }
};

// Muon's of a matrix, element by element; share: its rate.
template <class M, class T>
struct muon_step {
  T kept, rest, kept_twice, rest_of_both, size, shrink;

  template <class Env>
  constexpr muon_step(const Env& env, double share)
      : kept(M::from(env.momentum)),
        rest(M::from(1 - env.momentum)),
        kept_twice(M::from(env.momentum * env.momentum)),
        rest_of_both(M::from(1 - env.momentum * env.momentum)),
        size(M::from(env.lr * share)),
        shrink(M::from(1 - env.lr * env.weight_decay)) {}

  constexpr T next(T m, T g) const { return M::mul_add(kept, m, rest * g); }
  // momentum next(m, g) + (1 - momentum) g, of the momentum before this step
  constexpr T direction(T m, T g) const { return M::mul_add(kept_twice, m, rest_of_both * g); }
  constexpr T moved(T p, T orthogonal) const { return M::mul_add(p, shrink, T(0) - size * orthogonal); }
};

// amsgrad's: a NaN is the larger one.
template <class M, class T>
constexpr T largest_moment(T so_far, T now) {
  return element<op_code::maximum>::template value<M, T>(T(0), so_far, now);
}

}  // namespace shardwise::inline v0_1::operations

SHARDWISE_UNFUSED_END
