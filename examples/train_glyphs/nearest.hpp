// SPDX-License-Identifier: Apache-2.0
// The baseline that a network must beat: the label of the training image whose pixels differ least, brightness and contrast left aside.
#pragma once

#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "images.hpp"

namespace train_glyphs {

/// A picture in whole numbers whose mean is 0 and whose deviation is `unit`: light ink and dark paper are not what tells characters apart,
/// and whole numbers are the same on every machine.
using standardised = std::array<std::int16_t, static_cast<std::size_t>(pixels)>;
inline standardised standard(const image& picture) {
  constexpr double unit = 32;
  double mean = 0, squares = 0;
  for (const std::uint8_t p : picture) mean += p;
  mean /= pixels;
  for (const std::uint8_t p : picture) squares += (p - mean) * (p - mean);
  const double scale = squares > 0 ? unit / std::sqrt(squares / pixels) : 0;
  standardised result;
  for (std::size_t i = 0; i < pixels; ++i) result[i] = static_cast<std::int16_t>(std::lround(scale * (picture[i] - mean)));
  return result;
}

struct known_image {
  standardised picture{};
  std::int32_t label = -1;
};

/// By the sum of squared differences of all pixels; of equally near ones the first.
inline std::int32_t nearest_label(const standardised& x, std::span<const known_image> known) {
  std::int32_t label = -1, least = std::numeric_limits<std::int32_t>::max();
  for (const known_image& k : known) {
    std::int32_t sum = 0;
    for (std::size_t i = 0; i < pixels; ++i) sum += (x[i] - k.picture[i]) * (x[i] - k.picture[i]);
    if (sum < least) least = sum, label = k.label;
  }
  return label;
}

}  // namespace train_glyphs
