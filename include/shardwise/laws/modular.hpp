// SPDX-License-Identifier: Apache-2.0
// modp: integers modulo a prime, where sums, products and quotients are exact, and its kernel arithmetic for proofs.
#pragma once

#include <bit>
#include <cstdint>

#include <shardwise/runtime/host/math.hpp>
#include <shardwise/runtime/host/norm_math.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1::laws {

inline constexpr std::uint64_t modulus = 2147483629;  // 2^31 - 19: products fit 64 bits

// splitmix64's finaliser, reduced: a function without algebra, so that nothing cancels by accident.
constexpr std::uint32_t scramble(std::uint64_t x, std::uint64_t salt) {
  std::uint64_t h = (x + salt * 0x632be59bd9b4e019ULL) * 0x9e3779b97f4a7c15ULL;
  h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9ULL;
  h = (h ^ (h >> 27)) * 0x94d049bb133111ebULL;
  return static_cast<std::uint32_t>((h >> 31) % modulus);
}

// Numbers from 0 to modulus - 1. An enumeration: nvcc cannot evaluate closures that hold a class. Storage made by new
// has no value, so a kernel that leaves an element of its result unwritten is no constant expression.
enum class modp : std::uint32_t {};

constexpr modp reduced_to(std::uint64_t n) { return modp{static_cast<std::uint32_t>(n % modulus)}; }
constexpr std::uint64_t number(modp a) { return static_cast<std::uint64_t>(a); }

constexpr modp operator+(modp a, modp b) { return reduced_to(number(a) + number(b)); }
constexpr modp operator-(modp a, modp b) { return reduced_to(number(a) + modulus - number(b)); }
constexpr modp operator*(modp a, modp b) { return reduced_to(number(a) * number(b)); }

// Extended Euclid. Law: a * inverse(a) == 1 for a != 0; a quotient by 0 is 0 everywhere.
constexpr modp inverse(modp a) {
  std::int64_t r0 = static_cast<std::int64_t>(modulus), r1 = static_cast<std::int64_t>(a), t0 = 0, t1 = 1;
  while (r1 > 1) {
    const std::int64_t q = r0 / r1, r = r0 - q * r1, t = t0 - q * t1;
    r0 = r1;
    r1 = r;
    t0 = t1;
    t1 = t;
  }
  if (r1 == 0) return modp(0);
  return reduced_to(static_cast<std::uint64_t>(t1 < 0 ? t1 + static_cast<std::int64_t>(modulus) : t1));
}
constexpr modp operator/(modp a, modp b) { return a * inverse(b); }

static_assert(modp(7) / modp(7) == modp(1) && modp(1) / modp(2) * modp(2) == modp(1) &&
              modp(0) - modp(1) + modp(1) == modp(0));

constexpr modp arbitrary(modp x, std::uint64_t salt) { return reduced_to(scramble(number(x), salt)); }

}  // namespace shardwise::inline v0_1::laws

namespace shardwise::inline v0_1::host {
inline namespace SHARDWISE_HOST_BUILD {

// Every transcendental is an arbitrary fixed function; only what holds for all functions can be proved with it.
template <>
struct math<laws::modp> {
  using T = laws::modp;
  using accumulator = T;
  static constexpr bool ordered = false;
  static constexpr T exp(T x) { return laws::arbitrary(x, 1); }
  static constexpr T log(T x) { return laws::arbitrary(x, 2); }
  static constexpr T tanh(T x) { return laws::arbitrary(x, 3); }
  static constexpr T erf(T x) { return laws::arbitrary(x, 4); }
  static constexpr T sqrt(T x) { return laws::arbitrary(x, 5); }
  static constexpr T mul_add(T x, T y, T z) { return x * y + z; }
  static constexpr double power(double x, double n) { return 0.5 * x + 0.125 * n; }
  static constexpr T inverse_root(double x) { return from(x + 2); }
  static constexpr bool positive(T x) { return (laws::scramble(laws::number(x), 6) & 1U) != 0; }
  static constexpr T sin(T x) { return laws::arbitrary(x, 8); }
  static constexpr T cos(T x) { return laws::arbitrary(x, 9); }
  static constexpr T pow(T x, T n) { return laws::arbitrary(x, 10 + laws::number(n)); }
  // A total order that has nothing to do with sums and products: what is proved with it holds for every order.
  static constexpr std::uint64_t place(T x) { return (laws::number(x) * 48271 + 11) % laws::modulus; }
  static constexpr bool less(T a, T b) { return place(a) < place(b); }
  static constexpr T lowest() { return (T(0) - T(11)) / T(48271); }
  static constexpr T highest() { return (T(0) - T(12)) / T(48271); }
  // Exact where kernels and pullbacks rely on it, numbers of ranks and one over them; any other real is an arbitrary
  // element. A number that is not set (NaN) proves nothing: no constant.
  static constexpr T from(double x) {
    if (x != x)
      throw "a kernel under proof reads a number of the step that its step_env does not set: laws::dispatch sets them";
    if (x == 0) return T(0);
    if (x == -1) return T(0) - T(1);
    for (int n = 1; n <= 4; ++n) {
      if (x == n) return from_count(n);
      if (x == 1.0 / n) return laws::inverse(from_count(n));
    }
    return laws::reduced_to(laws::scramble(std::bit_cast<std::uint64_t>(x), 7));
  }
  static constexpr double number(T x) { return static_cast<double>(laws::number(x)); }
  static constexpr T from_count(std::int64_t n) { return laws::reduced_to(static_cast<std::uint64_t>(n)); }
};

// The fifth power stands for all orders: it is one to one, as 5 does not divide the modulus less one, so it has a root.
template <>
struct norm_math<laws::modp> {
  using T = laws::modp;
  static constexpr T power(T x, int) { return x * x * x * x * x; }
  static constexpr T root(T s, int) {
    T r = T(1);
    for (std::uint64_t e = (3 * (laws::modulus - 1) + 1) / 5; e > 0; e >>= 1, s = s * s)
      if (e & 1) r = r * s;
    return r;
  }
  static constexpr T slope(T x, T n, int) { return laws::arbitrary(x * laws::arbitrary(n, 8), 9); }
};
static_assert(norm_math<laws::modp>::power(norm_math<laws::modp>::root(laws::modp(12345), 2), 2) == laws::modp(12345));
static_assert(math<laws::modp>::place(math<laws::modp>::lowest()) == 0 &&
              math<laws::modp>::place(math<laws::modp>::highest()) == laws::modulus - 1);

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace shardwise::inline v0_1::host
