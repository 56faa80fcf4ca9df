// SPDX-License-Identifier: Apache-2.0
// Initial values: their distribution, and that each parameter draws its own.
#include <doctest/doctest.h>

#include <cmath>
#include <shardwise/runtime/host/initialise.hpp>
#include <shardwise/runtime/program/blocks.hpp>
#include <shardwise/runtime/host/collective_blocks.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;

constexpr std::size_t count = 40000;

std::vector<double> values_of(sw::init_kind kind, double scale, std::uint64_t seed, const std::string& path) {
  std::vector<double> v(count);
  sw::host::initialise_block(std::span<double>(v), sw::runtime::flat_layout(static_cast<std::int64_t>(count)), kind, scale,
                             seed, path);
  return v;
}

struct moments {
  double mean = 0, deviation = 0, low = 0, high = 0;
};
moments of(const std::vector<double>& v) {
  moments m{0, 0, v[0], v[0]};
  for (const double x : v) {
    m.mean += x / static_cast<double>(v.size());
    m.low = std::min(m.low, x);
    m.high = std::max(m.high, x);
  }
  for (const double x : v) m.deviation += (x - m.mean) * (x - m.mean) / static_cast<double>(v.size());
  m.deviation = std::sqrt(m.deviation);
  return m;
}

// Of two lists: |sum x y| / sqrt(sum x x * sum y y).
double correlation(const std::vector<double>& a, const std::vector<double>& b) {
  double ab = 0, aa = 0, bb = 0;
  for (std::size_t i = 0; i < a.size(); ++i) ab += a[i] * b[i], aa += a[i] * a[i], bb += b[i] * b[i];
  return std::abs(ab) / std::sqrt(aa * bb);
}

}  // namespace

// Bounds are five standard errors of 40,000 draws.
TEST_CASE("initial values: uniform between -scale and scale") {
  const moments m = of(values_of(sw::init_kind::uniform, 0.25, 7, "net.weight"));
  CHECK(std::abs(m.mean) < 5 * 0.25 / std::sqrt(3.0 * count));
  CHECK(m.deviation == doctest::Approx(0.25 / std::sqrt(3.0)).epsilon(0.02));
  CHECK(m.low >= -0.25);
  CHECK(m.low < -0.249);
  CHECK(m.high <= 0.25);
  CHECK(m.high > 0.249);
}

TEST_CASE("initial values: normal with deviation scale") {
  const moments m = of(values_of(sw::init_kind::normal, 2, 7, "net.weight"));
  CHECK(std::abs(m.mean) < 5 * 2 / std::sqrt(1.0 * count));
  CHECK(m.deviation == doctest::Approx(2).epsilon(0.02));
  CHECK(m.low < -6);
  CHECK(m.high > 6);
}

TEST_CASE("initial values: each parameter draws its own, and another seed draws others") {
  const auto a = values_of(sw::init_kind::normal, 1, 7, "layers.0.weight");
  CHECK(values_of(sw::init_kind::normal, 1, 7, "layers.0.weight") == a);
  CHECK(correlation(a, values_of(sw::init_kind::normal, 1, 7, "layers.1.weight")) < 5 / std::sqrt(1.0 * count));
  CHECK(correlation(a, values_of(sw::init_kind::normal, 1, 8, "layers.0.weight")) < 5 / std::sqrt(1.0 * count));
  for (const double x : values_of(sw::init_kind::zeros, 1, 7, "bias")) REQUIRE(x == 0);
  for (const double x : values_of(sw::init_kind::ones, 1, 7, "bias")) REQUIRE(x == 1);
}

// The logarithm is off by a unit and a half of the last place at most, the root by two, the cosine by 2^-52.
TEST_CASE("initial values: a normal one is Box and Muller's of its words, where these are extreme too") {
  const auto close = [](std::uint32_t a, std::uint32_t b) {
    const long double x = (a + 0.5L) / 4294967296.0L, turn = 6.283185307179586476925286766559L * (b / 4294967296.0L);
    const double want = static_cast<double>(std::sqrt(-2 * std::log(x)) * std::cos(turn));
    const double got = sw::runtime::drawn::normal<double>({{a, b, 0, 0}});
    return std::abs(got - want) <= 9e-16 * std::sqrt(-2 * static_cast<double>(std::log(x)));
  };
  std::uint32_t h = 1;
  const auto next = [&] {
    h = h * 1664525U + 1013904223U;
    return h ^ (h >> 13);
  };
  for (int k = 0; k < 200000; ++k) {
    const std::uint32_t a = next(), b = next();
    REQUIRE(close(a, b));
  }
  for (const std::uint32_t edge : {0U, 1U, 0x1FFFFFFFU, 0x20000000U, 0x3FFFFFFFU, 0x40000000U, 0x7FFFFFFFU, 0x80000000U,
                                   0xB504F333U, 0xB504F334U, 0xDFFFFFFFU, 0xE0000000U, 0xFFFFFFFEU, 0xFFFFFFFFU}) {
    REQUIRE(close(edge, next()));
    REQUIRE(close(next(), edge));
    REQUIRE(close(edge, edge));
  }
}

TEST_CASE("initial values: an element's bits depend on its place in the whole tensor alone") {
  for (const sw::init_kind kind :
       {sw::init_kind::zeros, sw::init_kind::ones, sw::init_kind::normal, sw::init_kind::uniform}) {
    sw::runtime::layout whole;
    whole.rank = 3;
    const std::int64_t extents[] = {5, 7, 23};
    for (int d = 0; d < 3; ++d) whole.ext[d] = whole.global[d] = extents[d];
    whole.make_dense();
    std::vector<double> all(5 * 7 * 23);
    sw::host::initialise_block(std::span<double>(all), whole, kind, 0.5, 9, "w");
    for (std::int64_t i = 0; i < 5 * 7 * 23; ++i)
      REQUIRE(sw::host::initial_value(kind, 0.5, 9, sw::runtime::stream_of("w"), i) == all[static_cast<std::size_t>(i)]);
    // blocks: rows, columns, the middle, one element, nothing
    const std::int64_t blocks[][6] = {{2, 0, 0, 3, 7, 23}, {0, 0, 11, 5, 7, 12}, {1, 3, 4, 2, 2, 9},
                                      {4, 6, 22, 1, 1, 1}, {0, 2, 0, 5, 1, 23},  {5, 0, 0, 0, 7, 23}};
    for (const auto& b : blocks) {
      sw::runtime::layout part = whole;
      for (int d = 0; d < 3; ++d) part.origin[d] = b[d], part.ext[d] = b[3 + d];
      part.make_dense();
      std::vector<float> some(static_cast<std::size_t>(part.numel()));
      sw::host::initialise_block(std::span<float>(some), part, kind, 0.5, 9, "w");
      sw::runtime::each_element(part, [&](std::int64_t i, std::int64_t g) {
        REQUIRE(some[static_cast<std::size_t>(i)] == static_cast<float>(all[static_cast<std::size_t>(g)]));
      });
    }
  }
}
