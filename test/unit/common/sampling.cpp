// SPDX-License-Identifier: Apache-2.0
// The next token by its logits: greedy, at a temperature, of the k likeliest; shares against softmax.
#include <doctest/doctest.h>

#include <common/sampling.hpp>

#include <cmath>
#include <limits>
#include <stdexcept>
#include <vector>

namespace {

using example::next_token;
using example::sampling;

const std::vector<float> logits{0.5f, 2.0f, -1.0f, 1.5f, 2.0f, -std::numeric_limits<float>::infinity()};

std::vector<double> shares(const sampling& how) {
  constexpr int draws = 20000;
  std::vector<double> n(logits.size());
  for (std::uint64_t k = 0; k < draws; ++k) n[static_cast<std::size_t>(next_token(logits, how, k))] += 1.0 / draws;
  return n;
}
// softmax of logits / t, those below `least` left out.
std::vector<double> softmax(double t, float least) {
  std::vector<double> w;
  double total = 0;
  for (const float x : logits) total += w.emplace_back(x < least ? 0 : std::exp(static_cast<double>(x) / t));
  for (double& x : w) x /= total;
  return w;
}
double apart(const std::vector<double>& a, const std::vector<double>& b) {
  double worst = 0;
  for (std::size_t i = 0; i < a.size(); ++i) worst = std::fmax(worst, std::abs(a[i] - b[i]));
  return worst;
}

}  // namespace

TEST_CASE("sampling: greedy takes the first of the likeliest, whatever the seed") {
  for (std::uint64_t seed = 0; seed < 20; ++seed) CHECK(next_token(logits, {.temperature = 0, .seed = seed}, seed) == 1);
  CHECK(next_token(std::vector<float>{-5, -3, -4}, {.temperature = 0}, 0) == 1);
}

TEST_CASE("sampling: shares are those of the softmax at the temperature, of the k likeliest and what equals them") {
  const float none = -std::numeric_limits<float>::max();
  CHECK(apart(shares({.temperature = 1, .seed = 3}), softmax(1, none)) < 0.015);  // five standard deviations
  CHECK(apart(shares({.temperature = 0.5, .seed = 3}), softmax(0.5, none)) < 0.018);
  CHECK(apart(shares({.temperature = 2, .top_k = 3, .seed = 4}), softmax(2, 1.5f)) < 0.018);
  CHECK(apart(shares({.temperature = 2, .top_k = 1, .seed = 4}), softmax(2, 2.0f)) < 0.018);  // two are the likeliest
  CHECK(apart(shares({.temperature = 1, .top_k = 100, .seed = 3}), softmax(1, none)) < 0.015);
}

TEST_CASE("sampling: a function of seed and number; other ones choose otherwise") {
  int differ_by_seed = 0, differ_by_number = 0;
  for (std::uint64_t k = 0; k < 200; ++k) {
    const int chosen = next_token(logits, {.seed = 1}, k);
    CHECK(chosen == next_token(logits, {.seed = 1}, k));
    differ_by_seed += chosen != next_token(logits, {.seed = 2}, k);
    differ_by_number += chosen != next_token(logits, {.seed = 1}, k + 1000);
  }
  CHECK(differ_by_seed > 50);
  CHECK(differ_by_number > 50);
}

TEST_CASE("sampling: logits that are not numbers are refused") {
  CHECK_THROWS_AS(next_token(std::vector<float>{1, std::nanf(""), 0}, {}, 0), std::domain_error);
  CHECK_THROWS_AS(next_token(std::vector<float>{}, {}, 0), std::domain_error);
}
