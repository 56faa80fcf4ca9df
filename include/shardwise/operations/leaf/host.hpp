// SPDX-License-Identifier: Apache-2.0
// Fills on the host: a number, random draws by position, values that are their positions.
#pragma once

#include <stdexcept>
#include <string>
#include <type_traits>

#include <shardwise/support/config.hpp>
#include <shardwise/support/elementary.hpp>
#include <shardwise/runtime/host/draw.hpp>

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

template <>
struct kernel<op_code::fill> {
  template <class T>
  static constexpr void run(const call& c, const operands<T>& q, const step_env&) {
    const std::int64_t n = c.l[result].numel();
    for (std::int64_t i = 0; i < n; ++i) q.p[result][i] = math<T>::from(c.f);
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
    const auto of = attributes_of<arange_attributes>(c.a);
    const std::int64_t n = o.numel();
    for (std::int64_t i = 0; i < n; ++i)
      q.p[result][i] = math<T>::from(static_cast<double>(of.first + of.step * (o.origin[0] + i)));
  }
};

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
