// SPDX-License-Identifier: Apache-2.0
// train_glyphs' baseline and its random numbers: laws that its comparison rests on.
#include "../../../examples/train_glyphs/nearest.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <vector>

#include "../../../examples/train_glyphs/random_numbers.hpp"

namespace {

using train_glyphs::image;
using train_glyphs::random_numbers;

image drawn(std::uint64_t number) {
  random_numbers r(1, 2, number);
  image p;
  for (auto& x : p) x = static_cast<std::uint8_t>(r.below(120));
  return p;
}

TEST_CASE("train_glyphs nearest: an image is nearest to itself, in another brightness and contrast, too") {
  std::vector<train_glyphs::known_image> known;
  for (std::int32_t k = 0; k < 50; ++k) known.push_back({train_glyphs::standard(drawn(static_cast<std::uint64_t>(k))), k});
  for (std::int32_t k = 0; k < 50; ++k) {
    image p = drawn(static_cast<std::uint64_t>(k));
    CHECK(train_glyphs::nearest_label(train_glyphs::standard(p), known) == k);
    for (auto& x : p) x = static_cast<std::uint8_t>(2 * x + 15);
    CHECK(train_glyphs::nearest_label(train_glyphs::standard(p), known) == k);
  }
}

TEST_CASE("train_glyphs nearest: of equally near images the first, and none has no label") {
  const auto p = train_glyphs::standard(drawn(1));
  const std::vector<train_glyphs::known_image> known{{train_glyphs::standard(drawn(2)), 7}, {p, 5}, {p, 6}};
  CHECK(train_glyphs::nearest_label(p, known) == 5);
  CHECK(train_glyphs::nearest_label(p, {}) == -1);
}

TEST_CASE("train_glyphs nearest: a standard image has mean 0 and deviation 32, a blank one is zeros") {
  const auto z = train_glyphs::standard(drawn(3));
  double sum = 0, squares = 0;
  for (const std::int16_t x : z) sum += x, squares += static_cast<double>(x) * x;
  CHECK(std::fabs(sum / train_glyphs::pixels) < 0.1);
  CHECK(std::sqrt(squares / train_glyphs::pixels) == doctest::Approx(32).epsilon(0.01));
  image blank;
  blank.fill(9);
  for (const std::int16_t x : train_glyphs::standard(blank)) CHECK(x == 0);
}

TEST_CASE("train_glyphs random numbers: functions of seed, purpose and number, and spread as they say") {
  CHECK(random_numbers(1, 2, 3).uniform() == random_numbers(1, 2, 3).uniform());
  for (const auto& [seed, purpose, number] :
       {std::array<std::uint64_t, 3>{2, 2, 3}, {1, 3, 3}, {1, 2, 4}, {2, 1, 3}, {3, 2, 1}})
    CHECK(random_numbers(1, 2, 3).uniform() != random_numbers(seed, purpose, number).uniform());
  double mean = 0, noise = 0, squares = 0;
  std::vector<int> of(7);
  constexpr int n = 20'000;
  for (int k = 0; k < n; ++k) {  // the first numbers of neighbours: what images differ by
    random_numbers r(1, 1, static_cast<std::uint64_t>(k));
    const double u = r.between(-1, 3);
    CHECK((u >= -1 && u < 3));
    mean += u / n;
    ++of[r.below(7)];
    const double e = r.noise();
    noise += e / n;
    squares += e * e / n;
  }
  CHECK(std::fabs(mean - 1) < 0.03);
  CHECK(std::fabs(noise) < 0.03);
  CHECK(std::fabs(squares - 1) < 0.03);
  for (const int count : of) CHECK(std::abs(count - n / 7) < 250);
}

}  // namespace
