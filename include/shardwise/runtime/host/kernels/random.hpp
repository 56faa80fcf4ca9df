// SPDX-License-Identifier: Apache-2.0
// Random masks and fills, drawn by position; and fills whose values are their positions.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include <shardwise/support/config.hpp>
#include <shardwise/support/elementary.hpp>
#include <shardwise/support/philox.hpp>
#include <shardwise/runtime/host/kernels/kernel.hpp>

namespace shardwise::host {
inline namespace SHARDWISE_HOST_BUILD {

namespace detail {

using runtime::random_policy;

// f(position in the result, position in a block stored as x, random words) for every element: a function of (seed,
// step, site, global element index), so that forward and adjoint, and all meshes, draw alike; see random_policy.
template <class F>
constexpr void each_draw(const call& c, const layout& x, const step_env& env, F&& f) {
  const layout& o = c.l[result];
  const bool by_element = env.random == random_policy::by_element;
  const std::uint32_t site = by_element ? static_cast<std::uint32_t>(c.a.v[0]) + 1 : 0;
  std::int64_t at[max_rank]{};
  const std::int64_t n = o.numel();
  for (std::int64_t i = 0; i < n; ++i) {
    std::int64_t from = 0;
    for (int d = 0; d < o.rank; ++d) from += at[d] * x.str[d];
    const std::uint64_t index = static_cast<std::uint64_t>(by_element ? global_index(o, at) : c.draw + i);
    f(i, from,
      philox(env.seed, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), site,
             static_cast<std::uint32_t>(env.step)));
    for (int d = o.rank - 1; d >= 0 && ++at[d] == o.ext[d]; --d) at[d] = 0;
  }
}

}  // namespace detail

// A product, also where it is dropped: a NaN stays one, as in PyTorch.
template <>
struct kernel<op_code::dropout> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    const T keep = T(1) / math<T>::from(1 - c.f);
    detail::each_draw(c, c.l[0], env, [&](std::int64_t i, std::int64_t from, const philox_words& w) {
      q.p[result][i] = static_cast<T>(q.p[0][from] * (unit_32(w) < c.f ? T(0) : keep));
    });
  }
};

template <>
struct kernel<op_code::rand> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    detail::each_draw(c, c.l[result], env, [&](std::int64_t i, std::int64_t, const philox_words& w) {
      q.p[result][i] = math<T>::from(unit_24(w.w[0]));
    });
  }
};

// Box-Muller; the shift keeps the logarithm finite.
template <>
struct kernel<op_code::randn> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    detail::each_draw(c, c.l[result], env, [&](std::int64_t i, std::int64_t, const philox_words& w) {
      if constexpr (std::is_floating_point_v<T>) {
        const double radius = elementary::sqrt(-2 * elementary::log((w.w[0] + 0.5) * (1.0 / 4294967296.0)));
        q.p[result][i] = static_cast<T>(radius * elementary::cos(6.283185307179586 / 4294967296.0 * w.w[1]));
      } else {  // some function of the words
        q.p[result][i] = math<T>::from(w.w[0] + 0.5) + math<T>::from(w.w[1] + 0.25);
      }
    });
  }
};

inline std::string not_a_probability(double p) {
  return "shardwise: bernoulli: " + std::to_string(p) +
         " is no probability; the operand's elements must be from 0 to 1, which sigmoid or clamp sees to";
}

// 1 with the probability that the operand says, else 0.
template <>
struct kernel<op_code::bernoulli> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env& env) {
    using m = math<T>;
    detail::each_draw(c, c.l[0], env, [&](std::int64_t i, std::int64_t from, const philox_words& w) {
      const T p = q.p[0][from];
      if constexpr (std::is_floating_point_v<T>)
        if (!(p >= T(0) && p <= T(1))) throw std::domain_error(not_a_probability(static_cast<double>(p)));
      q.p[result][i] = m::positive(p - m::from(unit_24(w.w[0]))) ? T(1) : T(0);
    });
  }
};

template <>
struct kernel<op_code::arange> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const layout& o = c.l[result];
    const std::int64_t n = o.numel();
    for (std::int64_t i = 0; i < n; ++i)
      q.p[result][i] = math<T>::from(static_cast<double>(c.a.v[0] + c.a.v[1] * (o.origin[0] + i)));
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::host
