// SPDX-License-Identifier: Apache-2.0
// Scratch for convolutions on devices: what a library may ask for, and copies of blocks that lie in another memory format than the rest.
#pragma once

#include <shardwise/propagation/scratch.hpp>

namespace shardwise::inline v0_1::operations {

// A call never takes more.
inline constexpr std::int64_t convolution_most_bytes = std::int64_t{256} << 20;
// Whatever the extents: tables of the places of a window.
inline constexpr std::int64_t convolution_least_bytes = std::int64_t{1} << 20;

// Of blocks of so many elements. A library is asked for no kernel that wants more than is left beside the copies, so this is a
// budget: room for a copy of each block, in float where elements are of two bytes, and for some more gradients of a weight, which are
// summed in parts. Law: it grows with each block.
constexpr std::int64_t convolution_library_bytes(dtype type, std::int64_t image, std::int64_t weight, std::int64_t result) {
  if (!is_floating(type)) return 0;
  const std::int64_t size = type == dtype::f64 ? 8 : 4;
  const std::int64_t bytes = device_scratch::align(size * (image + 4 * weight + result)) + convolution_least_bytes;
  return bytes < convolution_most_bytes ? bytes : convolution_most_bytes;
}

}  // namespace shardwise::inline v0_1::operations
