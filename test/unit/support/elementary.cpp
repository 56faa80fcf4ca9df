// SPDX-License-Identifier: Apache-2.0
// Elementary functions give the bits of <cmath>'s, whose functions of the same type they are.
#include <doctest/doctest.h>

#include <shardwise/support/elementary.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>
#include <type_traits>

namespace {

namespace own = shardwise::elementary;

template <class T>
bool same(T a, T b) {
  using bits = std::conditional_t<sizeof(T) == 4, std::uint32_t, std::uint64_t>;
  return std::bit_cast<bits>(a) == std::bit_cast<bits>(b) || (a != a && b != b);
}

TEST_CASE_TEMPLATE("bits of the standard library's functions", T, float, double) {
  using limits = std::numeric_limits<T>;
  const T special[] = {T(0),
                       -T(0),
                       T(1),
                       T(-1),
                       T(0.5),
                       T(-2),
                       limits::min(),
                       limits::max(),
                       limits::lowest(),
                       limits::denorm_min(),
                       limits::infinity(),
                       -limits::infinity(),
                       limits::quiet_NaN()};
  const auto check = [&](T x) {
    CHECK(same(own::exp(x), std::exp(x)));
    CHECK(same(own::log(x), std::log(x)));
    CHECK(same(own::sqrt(x), std::sqrt(x)));
    CHECK(same(own::tanh(x), std::tanh(x)));
    CHECK(same(own::erf(x), std::erf(x)));
    CHECK(same(own::sin(x), std::sin(x)));
    CHECK(same(own::cos(x), std::cos(x)));
    CHECK(same(own::fabs(x), std::fabs(x)));
    for (T n : special) CHECK(same(own::pow(x, n), std::pow(x, n)));
    if constexpr (std::is_same_v<T, float>)
      for (T n : special) CHECK(same(own::copysign(x, n), std::copysign(x, n)));
  };
  for (T x : special) check(x);
  for (int i = -40; i <= 40; ++i) check(static_cast<T>(i) * T(0.37));
}

}  // namespace
