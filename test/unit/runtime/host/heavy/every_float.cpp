// SPDX-License-Identifier: Apache-2.0
// Every float there is: its exponential, tanh, logarithm and erf beside double's, which vector_math.cpp holds to long double's.
#include <last_place.hpp>

#include <shardwise/runtime/host/isa.hpp>
#include <shardwise/runtime/host/vector_math.hpp>

#include <doctest/doctest.h>

#include <algorithm>

namespace {

namespace host = shardwise::host;

// The largest error of f over all floats, in units.
template <class F>
double most_units_off(F f) {
  constexpr std::int64_t block = 4096;
  static float y[block];
  static double t[block], e[block];
  double most = 0;
  for (std::uint64_t first = 0; first < std::uint64_t{1} << 32; first += block) {
    host::independent_loop<double>(block, [=](std::int64_t i) {
      const float x = std::bit_cast<float>(static_cast<std::uint32_t>(first + static_cast<std::uint64_t>(i)));
      y[i] = f(x);
      t[i] = f(static_cast<double>(x));
    });
    test::float_units_off(block, y, t, e);
    for (const double off : e) most = std::max(most, off);
  }
  return most;
}

TEST_CASE("exp of every float is within two units") {
  CHECK(most_units_off([](auto x) { return host::vector_math::exp(x); }) <= 1.6);
}
TEST_CASE("tanh of every float is within two units") {
  CHECK(most_units_off([](auto x) { return host::vector_math::tanh(x); }) <= 1.6);
}
TEST_CASE("log of every float is within two units") {
  CHECK(most_units_off([](auto x) { return host::vector_math::log(x); }) <= 1.6);
}
TEST_CASE("erf of every float is within two units") {
  CHECK(most_units_off([](auto x) { return host::vector_math::erf(x); }) <= 1.6);
}

}  // namespace
