// SPDX-License-Identifier: Apache-2.0
// Random numbers for images: SplitMix64 (Steele, Lea and Flood 2014), the same on every machine.
#pragma once

#include <cstddef>
#include <cstdint>

namespace train_glyphs {

/// A sequence that depends on (seed, purpose, number) alone.
class random_numbers {
 public:
  random_numbers(std::uint64_t seed, std::uint64_t purpose, std::uint64_t number) {
    for (const std::uint64_t word : {seed, purpose, number}) state_ = mixed(state_ + step + word);
  }
  double uniform() { return static_cast<double>(mixed(state_ += step) >> 11) * 0x1p-53; }  // from 0, below 1
  double between(double least, double most) { return least + (most - least) * uniform(); }
  std::size_t below(std::size_t n) { return static_cast<std::size_t>(uniform() * static_cast<double>(n)); }
  /// Mean 0, deviation 1; the sum of four uniform numbers is near enough to a normal one for noise.
  double noise() {
    double sum = -2;
    for (int i = 0; i < 4; ++i) sum += uniform();
    return sum * 1.7320508075688772;
  }

 private:
  static constexpr std::uint64_t step = 0x9e3779b97f4a7c15;
  static std::uint64_t mixed(std::uint64_t z) {
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
  }
  std::uint64_t state_ = 0;
};

}  // namespace train_glyphs
