// SPDX-License-Identifier: Apache-2.0
// An image of one character, and what the network sees of it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace train_glyphs {

inline constexpr int side = 24;  // pixels of an image, both ways
inline constexpr int pixels = side * side;

using image = std::array<std::uint8_t, static_cast<std::size_t>(pixels)>;  // row by row from the top; 0 is paper, 255 ink

inline float seen(std::uint8_t p) { return static_cast<float>(p) / 128.0f - 0.5f; }

}  // namespace train_glyphs
