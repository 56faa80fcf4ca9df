// SPDX-License-Identifier: Apache-2.0
// How far results are from the truth, in units in the last place, for many at once.
#pragma once

#include <shardwise/runtime/host/isa.hpp>

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

namespace test {

// The distance between two neighbouring numbers of T where `truth` lies.
template <class T>
double unit_at(long double truth) {
  using limits = std::numeric_limits<T>;
  int exponent = 0;
  std::frexp(truth, &exponent);
  const int least = limits::min_exponent;
  return static_cast<double>(std::ldexp(1.0L, (exponent < least ? least : exponent) - limits::digits));
}

template <class T>
double units_off(T value, long double truth) {
  if (truth != truth) return value != value ? 0 : HUGE_VAL;
  if (value == static_cast<T>(truth)) return 0;  // infinities, too
  return static_cast<double>(std::fabs(static_cast<long double>(value) - truth)) / unit_at<T>(truth);
}

// The same of floats beside doubles, which are truth enough, without branches: e[i] for i in [0, n).
inline void float_units_off(std::int64_t n, const float* value, const double* truth, double* e) {
  shardwise::host::independent_loop<double>(n, [=](std::int64_t i) {
    const double t = truth[i], y = static_cast<double>(value[i]);
    const double power = std::bit_cast<double>(std::bit_cast<std::uint64_t>(t) & 0x7FF0000000000000U) * 0x1p-23;
    const double off = (y - t) / (power < 0x1p-149 ? 0x1p-149 : power);
    const bool same = y == static_cast<double>(static_cast<float>(t)) || (!(t == t) && !(y == y));
    e[i] = same ? 0.0 : off == off ? (off < 0 ? -off : off) : std::numeric_limits<double>::infinity();
  });
}

}  // namespace test
