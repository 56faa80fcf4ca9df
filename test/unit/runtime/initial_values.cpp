// SPDX-License-Identifier: Apache-2.0
// Initial values: their distribution, and that each parameter draws its own.
#include <doctest/doctest.h>

#include <cmath>
#include <shardwise/runtime/program/blocks.hpp>
#include <shardwise/runtime/host/collective_blocks.hpp>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;

constexpr std::size_t count = 40000;

std::vector<double> values_of(sw::init_kind kind, double scale, std::uint64_t seed, const std::string& path) {
  std::vector<double> v(count);
  sw::runtime::initialise_block(std::span<double>(v), sw::runtime::flat_layout(static_cast<std::int64_t>(count)), kind,
                                scale, seed, path);
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
