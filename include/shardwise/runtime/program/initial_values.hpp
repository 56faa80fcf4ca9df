// SPDX-License-Identifier: Apache-2.0
// Initial values of parameters and buffers as formulas of (seed, path, global element index): equal on every mesh, placement and
// backend.
#pragma once

#include <bit>
#include <cstdint>
#include <string_view>

#include <shardwise/support/config.hpp>
#include <shardwise/support/philox.hpp>
#include <shardwise/vocabulary/init.hpp>

SHARDWISE_UNFUSED_BEGIN

namespace shardwise::inline v0_1::runtime {

// FNV-1a: a parameter's random stream is named by its path, so it does not move when others are added.
constexpr std::uint32_t stream_of(std::string_view path) {
  std::uint32_t h = 2166136261U;
  for (char ch : path) h = (h ^ static_cast<unsigned char>(ch)) * 16777619U;
  return h;
}

constexpr philox_words initial_words(std::uint64_t seed, std::uint32_t stream, std::int64_t index) {
  return philox(seed, static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), stream, 0xFFFFFFFFU);
}

// Doubles by sums, products and quotients alone, of which no two may be fused: what computes them has to keep that, and then they
// have the same bits everywhere. Without calls or branches, so that loops over them become vectors. D: how a double is computed
// with, `double` in the loops of runtime/host/isa.hpp, a type of devices' own there.
namespace drawn {

template <class D>
constexpr D real(std::uint32_t word) {  // by the conversion of signed words, which all instruction sets have
  return D(static_cast<double>(static_cast<std::int32_t>(word ^ 0x80000000U))) + D(2147483648.0);
}

// -log((word + 1/2) / 2^32) > 0, within two units in the last place. x = 2^e m with sqrt(1/2) <= m < sqrt(2), and
// log m = 2 (s + s^3/3 + s^5/5 + ...) of s = (m - 1) / (m + 1), |s| <= 0.172: ten terms leave 2^-56 of it.
template <class D>
constexpr D minus_log(std::uint32_t word) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(static_cast<double>(real<D>(word) + D(0.5)));
  constexpr std::uint64_t root_half = 0x3FE6A09E667F3BCDU;
  const std::uint64_t shifted = bits - root_half;
  const std::int32_t e = static_cast<std::int32_t>(static_cast<std::int64_t>(shifted) >> 52);
  const D m(std::bit_cast<double>(bits - (shifted & 0xFFF0000000000000U)));
  const D f = m - D(1), s = f / (m + D(1)), z = s * s;
  D p(1.0 / 21);
  for (const double term : {1.0 / 19, 1.0 / 17, 1.0 / 15, 1.0 / 13, 1.0 / 11, 1.0 / 9, 1.0 / 7, 1.0 / 5, 1.0 / 3})
    p = p * z + D(term);
  const D log_m = s + s + (s + s) * (p * z);
  const D power(static_cast<double>(e - 32));  // e counts from 2^0, and x from 2^-32
  // ln 2 in two parts, of which the first has 38 bits: times a power it is exact
  return D(0) - (power * D(0x1.62e42fefap-1) + (log_m + power * D(0x1.cf79abc9e3b39p-40)));
}

// x > 0: by Newton's steps to 1 / sqrt(x), which begin three hundredths off; a unit or two in the last place.
template <class D>
constexpr D root(D x) {
  const std::uint64_t bits = std::bit_cast<std::uint64_t>(static_cast<double>(x));
  D y(std::bit_cast<double>(0x5FE6EB50C7B537A9U - (bits >> 1)));
  const D half = x * D(0.5);
  for (int k = 0; k < 5; ++k) y = y * (D(1.5) - half * y * y);
  return x * y;
}

// cos(2 pi word / 2^32). The nearest quarter of a turn is taken off as a whole number; the series of the rest, |y| <= pi / 4, leave
// 2^-57 of 1.
template <class D>
constexpr D cosine(std::uint32_t word) {
  const std::uint32_t quarter = (word + 0x20000000U) >> 30;
  const D y = D(static_cast<double>(static_cast<std::int32_t>(word - (quarter << 30)))) * D(1.4629180792671596e-9);
  const D z = y * y;
  D even(-1.0 / 6402373705728000), odd(1.0 / 355687428096000);
  for (const double term : {1.0 / 20922789888000, -1.0 / 87178291200, 1.0 / 479001600, -1.0 / 3628800, 1.0 / 40320,
                            -1.0 / 720, 1.0 / 24, -1.0 / 2, 1.0})
    even = even * z + D(term);
  for (const double term :
       {-1.0 / 1307674368000, 1.0 / 6227020800, -1.0 / 39916800, 1.0 / 362880, -1.0 / 5040, 1.0 / 120, -1.0 / 6, 1.0})
    odd = odd * z + D(term);
  const D sine = odd * y;
  const D value = (quarter & 1U) != 0 ? sine : even;
  return ((quarter ^ (quarter >> 1)) & 1U) != 0 ? D(0) - value : value;
}

// Box and Muller: two uniform words as one number of the standard normal distribution.
template <class D>
constexpr D normal(const philox_words& w) {
  const D m = minus_log<D>(w.w[0]);
  return root<D>(m + m) * cosine<D>(w.w[1]);
}
// In [-1, 1).
template <class D>
constexpr D symmetric(const philox_words& w) {
  return real<D>(w.w[0]) * D(2.0 / 4294967296.0) - D(1);
}

}  // namespace drawn

// The value of one element.
template <class D>
constexpr D initial_value(init_kind kind, double scale, std::uint64_t seed, std::uint32_t stream, std::int64_t index) {
  switch (kind) {
    case init_kind::ones: return D(1);
    case init_kind::uniform: return D(scale) * drawn::symmetric<D>(initial_words(seed, stream, index));
    case init_kind::normal: return D(scale) * drawn::normal<D>(initial_words(seed, stream, index));
    case init_kind::zeros: break;
  }
  return D(0);
}

}  // namespace shardwise::inline v0_1::runtime

SHARDWISE_UNFUSED_END
