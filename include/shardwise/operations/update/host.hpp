// SPDX-License-Identifier: Apache-2.0
// Optimizer updates on the host, in place on parameter and states.
#pragma once

#include <shardwise/operations/update/loss_scale.hpp>
#include <shardwise/operations/update/options.hpp>
#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/copy_block.hpp>
#include <shardwise/support/config.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

// Of updates under a dynamic loss scale: whether this step's are left out, and their number of the step, which counts no such steps.
template <class T>
constexpr bool is_skipped(std::int64_t clipped, const T* factor) {
  return clipped == 2 && math<T>::less(*factor, T(0));
}
template <class T>
constexpr double steps_taken(std::int64_t clipped, const T* factor, const step_env& env) {
  return static_cast<double>(env.step) - (clipped == 2 ? math<T>::number(factor[1]) : 0.0);
}

}  // namespace detail

// operands: parameter, gradient [, momentum buffer] [, factor]; torch.optim.SGD with momentum, Nesterov's too; dampened it is sgd_with.
template <>
struct kernel<op_code::sgd> {
  static constexpr cut_kind cut = cut_kind::update;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const auto of = attributes_of<sgd_attributes>(c.a);
    const bool clipped = of.clipped != 0, momentum = of.momentum != 0;
    using real = math<T>;
    const T lr = real::from(env.lr), mu = real::from(env.momentum), decay = real::from(env.weight_decay * c.f);
    if (clipped && detail::is_skipped<T>(of.clipped, q.p[c.inputs - 1])) return;
    const T factor = clipped ? *q.p[c.inputs - 1] : T(1);
    const std::int64_t n = c.l[0].numel();
    T* const p = q.p[0];
    const T* const g = q.p[1];
    T* const b = q.p[2];
    const auto gradient = [=](std::int64_t i) { return g[i] * factor + decay * p[i]; };
    if (of.momentum == 2)
      independent_loop<T>(n, [=](std::int64_t i) {
        const T now = gradient(i);
        b[i] = mu * b[i] + now;
        p[i] = p[i] - lr * (now + mu * b[i]);
      });
    else if (momentum)
      independent_loop<T>(n, [=](std::int64_t i) {
        b[i] = mu * b[i] + gradient(i);
        p[i] = p[i] - lr * b[i];
      });
    else independent_loop<T>(n, [=](std::int64_t i) { p[i] = p[i] - lr * gradient(i); });
  }
};

namespace detail {

// The run's numbers as Adam needs them, and its formulas, element by element: bias-corrected, eps outside the root.
template <class T>
struct adam_numbers {
  T b1, b2, rest1, rest2, eps, size, root, coupled, shrink;

  constexpr adam_numbers(const step_env& env, double t, bool decoupled, double share)
      : b1(math<T>::from(env.beta1)),
        b2(math<T>::from(env.beta2)),
        rest1(math<T>::from(1 - env.beta1)),
        rest2(math<T>::from(1 - env.beta2)),
        eps(math<T>::from(env.eps)),
        size(math<T>::from(env.lr / (1 - math<T>::power(env.beta1, t)))),
        root(math<T>::inverse_root(1 - math<T>::power(env.beta2, t))),
        coupled(decoupled ? T(0) : math<T>::from(env.weight_decay * share)),
        shrink(decoupled ? math<T>::from(1 - env.lr * (env.weight_decay * share)) : T(1)) {}

  constexpr T decayed(T g, T p) const { return g + coupled * p; }
  constexpr T first(T m, T g) const { return b1 * m + rest1 * g; }
  constexpr T second(T v, T g) const { return b2 * v + rest2 * g * g; }
  constexpr T parameter(T p, T m, T v) const { return p * shrink - size * m / (math<T>::sqrt(v) * root + eps); }
};

}  // namespace detail

// operands: parameter, gradient, first moment, second moment [, steps] [, factor]. Adam adds the decay to the
// gradient, AdamW's is decoupled. As torch.optim. Steps: the first element of a list that counts them.
template <>
struct kernel<op_code::adam> {
  static constexpr cut_kind cut = cut_kind::update;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const auto of = attributes_of<adam_attributes>(c.a);
    const bool clipped = of.clipped != 0, counted = of.counts != 0;
    const T* const by = q.p[c.inputs - 1];  // the factor, if there is one
    if (detail::is_skipped<T>(of.clipped, by)) return;
    const detail::adam_numbers<T> with(env, counted ? math<T>::number(*q.p[4]) : detail::steps_taken<T>(of.clipped, by, env),
                                       of.decoupled != 0, c.f);
    const T factor = clipped ? *by : T(1);
    const std::int64_t n = c.l[0].numel();
    T* const p = q.p[0];
    const T* const gr = q.p[1];
    T* const m = q.p[2];
    T* const v = q.p[3];
    const auto update = [=](std::int64_t i, T g) {
      m[i] = with.first(m[i], g);
      v[i] = with.second(v[i], g);
      p[i] = with.parameter(p[i], m[i], v[i]);
    };
    if (clipped) independent_loop<T>(n, [=](std::int64_t i) { update(i, gr[i] * factor + with.coupled * p[i]); });
    else independent_loop<T>(n, [=](std::int64_t i) { update(i, with.decayed(gr[i], p[i])); });
  }
};

// The same two with options, and Lion: operations/update/options.hpp. Behind Adam's moments the largest second one, if it is kept.
template <>
struct kernel<op_code::sgd_with> {
  static constexpr cut_kind cut = cut_kind::update;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const auto of = attributes_of<sgd_attributes>(c.a);
    const std::int64_t options = update_options_of(c.a);
    const T* const by = q.p[c.inputs - 1];
    if (detail::is_skipped<T>(of.clipped, by)) return;
    const operations::optioned_gradient<math<T>, T> given(env, options, of.clipped != 0 ? *by : T(1));
    const operations::sgd_options_step<math<T>, T> with(env, options, of.momentum,
                                                        detail::steps_taken<T>(of.clipped, by, env), c.f);
    const std::int64_t n = c.l[0].numel();
    T* const p = q.p[0];
    const T* const g = q.p[1];
    T* const b = q.p[2];
    if (with.has_momentum)
      independent_loop<T>(n, [=](std::int64_t i) {
        const T d = with.decayed(given(g[i]), p[i]);
        b[i] = with.next(b[i], d);
        p[i] = with.moved(p[i], with.direction(d, b[i]));
      });
    else independent_loop<T>(n, [=](std::int64_t i) { p[i] = with.moved(p[i], with.decayed(given(g[i]), p[i])); });
  }
};

template <>
struct kernel<op_code::adam_with> {
  static constexpr cut_kind cut = cut_kind::update;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const auto of = attributes_of<adam_attributes>(c.a);
    const std::int64_t options = update_options_of(c.a);
    const bool largest = (options & keeps_largest) != 0;
    const T* const by = q.p[c.inputs - 1];
    if (detail::is_skipped<T>(of.clipped, by)) return;
    const double number =
        of.counts != 0 ? math<T>::number(*q.p[largest ? 5 : 4]) : detail::steps_taken<T>(of.clipped, by, env);
    const detail::adam_numbers<T> with(env, number, of.decoupled != 0, c.f);
    const operations::optioned_gradient<math<T>, T> given(env, options, of.clipped != 0 ? *by : T(1));
    const std::int64_t n = c.l[0].numel();
    T* const p = q.p[0];
    const T* const gr = q.p[1];
    T* const m = q.p[2];
    T* const v = q.p[3];
    T* const w = q.p[4];
    const auto moments = [=](std::int64_t i) {
      const T g = with.decayed(given(gr[i]), p[i]);
      m[i] = with.first(m[i], g);
      v[i] = with.second(v[i], g);
    };
    if (largest)
      independent_loop<T>(n, [=](std::int64_t i) {
        moments(i);
        w[i] = operations::largest_moment<math<T>, T>(w[i], v[i]);
        p[i] = with.parameter(p[i], m[i], w[i]);
      });
    else
      independent_loop<T>(n, [=](std::int64_t i) {
        moments(i);
        p[i] = with.parameter(p[i], m[i], v[i]);
      });
  }
};

// operands: parameter, gradient, momentum [, factor]
template <>
struct kernel<op_code::lion> {
  static constexpr cut_kind cut = cut_kind::update;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const auto of = attributes_of<sgd_attributes>(c.a);
    const T* const by = q.p[c.inputs - 1];
    if (detail::is_skipped<T>(of.clipped, by)) return;
    const operations::optioned_gradient<math<T>, T> given(env, update_options_of(c.a), of.clipped != 0 ? *by : T(1));
    const operations::lion_step<math<T>, T> with(env, c.f);
    T* const p = q.p[0];
    const T* const gr = q.p[1];
    T* const m = q.p[2];
    independent_loop<T>(c.l[0].numel(), [=](std::int64_t i) {
      const T g = given(gr[i]);
      p[i] = with.moved(p[i], m[i], g);
      m[i] = with.next(m[i], g);
    });
  }
};

// operands: parameter, gradient, direction, momentum [, factor]
template <>
struct kernel<op_code::muon> {
  static constexpr cut_kind cut = cut_kind::update;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const auto of = attributes_of<sgd_attributes>(c.a);
    const T* const by = q.p[c.inputs - 1];
    if (detail::is_skipped<T>(of.clipped, by)) return;
    const operations::optioned_gradient<math<T>, T> given(env, update_options_of(c.a), of.clipped != 0 ? *by : T(1));
    const operations::muon_step<math<T>, T> with(env, c.f);
    T* const p = q.p[0];
    const T* const g = q.p[1];
    const T* const o = q.p[2];
    T* const m = q.p[3];
    independent_loop<T>(c.l[0].numel(), [=](std::int64_t i) {
      p[i] = with.moved(p[i], o[i]);
      m[i] = with.next(m[i], given(g[i]));
    });
  }
};

// operands: momentum, gradient [, factor]; in a step that is skipped the momentum
template <>
struct kernel<op_code::muon_direction> {
  static constexpr cut_kind cut = cut_kind::update;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const auto of = attributes_of<adam_term_attributes>(c.a);
    const T* const by = q.p[c.inputs - 1];
    T* const out = q.p[result];
    const T* const m = q.p[0];
    const T* const g = q.p[1];
    const std::int64_t n = c.l[0].numel();
    if (detail::is_skipped<T>(of.clipped, by)) return independent_loop<T>(n, [=](std::int64_t i) { out[i] = m[i]; });
    const operations::optioned_gradient<math<T>, T> given(env, update_options_of(c.a), of.clipped != 0 ? *by : T(1));
    const operations::muon_step<math<T>, T> with(env, 1);
    independent_loop<T>(n, [=](std::int64_t i) { out[i] = with.direction(m[i], given(g[i])); });
  }
};

// One of Adam's three results, as a value of its own; behind its operands the factor of a dynamic loss scale, if there is one: in a step
// that is skipped the result is operand 0.
template <>
struct kernel<op_code::adam_term> {
  static constexpr cut_kind cut = cut_kind::update;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const std::int64_t n = c.l[0].numel();
    T* const out = q.p[result];
    const T* const x = q.p[0];
    const T* const y = q.p[1];
    const T* const z = q.p[2];
    const auto of = attributes_of<adam_term_attributes>(c.a);
    const bool last = of.which == 2;
    const detail::adam_numbers<T> with(env, last ? math<T>::number(*q.p[3]) : 1.0, of.decoupled != 0, c.f);
    const T* const by = q.p[c.inputs - 1];  // the factor, if there is one
    const T factor = of.clipped != 0 ? *by : T(1);
    if (detail::is_skipped<T>(of.clipped, by)) {
      independent_loop<T>(n, [=](std::int64_t i) { out[i] = x[i]; });
    } else if (last) {
      independent_loop<T>(n, [=](std::int64_t i) { out[i] = with.parameter(x[i], y[i], z[i]); });
    } else if (of.which == 0) {
      independent_loop<T>(n, [=](std::int64_t i) { out[i] = with.first(x[i], with.decayed(y[i] * factor, z[i])); });
    } else {
      independent_loop<T>(n, [=](std::int64_t i) { out[i] = with.second(x[i], with.decayed(y[i] * factor, z[i])); });
    }
  }
};

template <>
struct kernel<op_code::adam_term_with> {
  static constexpr cut_kind cut = cut_kind::update;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const auto of = attributes_of<adam_term_attributes>(c.a);
    const T* const by = q.p[c.inputs - 1];
    if (detail::is_skipped<T>(of.clipped, by)) return kernel<op_code::adam_term>::run<T>(c, q, env);
    const std::int64_t n = c.l[0].numel();
    T* const out = q.p[result];
    const T* const x = q.p[0];
    const T* const y = q.p[1];
    const T* const z = q.p[2];
    const detail::adam_numbers<T> with(env, 1.0, of.decoupled != 0, c.f);
    const operations::optioned_gradient<math<T>, T> given(env, update_options_of(c.a), of.clipped != 0 ? *by : T(1));
    if (of.which == 3)
      independent_loop<T>(n, [=](std::int64_t i) { out[i] = operations::largest_moment<math<T>, T>(x[i], y[i]); });
    else if (of.which == 0)
      independent_loop<T>(n, [=](std::int64_t i) { out[i] = with.first(x[i], with.decayed(given(y[i]), z[i])); });
    else independent_loop<T>(n, [=](std::int64_t i) { out[i] = with.second(x[i], with.decayed(given(y[i]), z[i])); });
  }
};

// operands: what is written, its new value
template <>
struct kernel<op_code::assign> {
  static constexpr cut_kind cut = cut_kind::update;
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    if (q.p[0] == q.p[1])
      return;  // computed there by plan_memory, which asks for equal specs; nothing else lies at a leaf's place
    const std::int64_t zero[max_rank]{};
    copy_block<T>(q.p[1], c.l[1], zero, q.p[0], c.l[0], zero, c.l[0].ext);
  }
};

// operands: counts of steps [, the factor of a dynamic loss scale]
template <>
struct kernel<op_code::advance> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    if (c.inputs > 1 && detail::is_skipped<T>(2, q.p[1])) return;
    const std::int64_t n = c.l[0].numel();
    T* const to = q.p[0];
    for (std::int64_t i = 0; i < n; ++i) to[i] = to[i] + T(1);
  }
};

template <>
struct kernel<op_code::adjust_scale> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const auto of = attributes_of<adjust_scale_attributes>(c.a);
    operations::next_loss_scale<math<T>, T>(of, of.clips != 0 ? math<T>::from(env.max_norm) : T(0), q.p[0], q.p[1], q.p[2],
                                            *q.p[3]);
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host

SHARDWISE_UNFUSED_END
