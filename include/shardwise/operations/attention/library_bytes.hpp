// SPDX-License-Identifier: Apache-2.0
// Scratch for attention on devices: a bound on what a library may ask for, and the slices that a large adjoint is cut into.
#pragma once

#include <shardwise/propagation/scratch.hpp>

namespace shardwise::inline v0_1 {

// One rank's blocks.
struct attention_extents {
  std::int64_t batch = 0, heads = 0, key_heads = 0, queries = 0, keys = 0, size = 0, value_size = 0;

  constexpr std::int64_t group() const { return key_heads > 0 ? heads / key_heads : 1; }
  // So many rows of the batch, and so many heads of keys with the queries' heads that read them.
  constexpr attention_extents part(std::int64_t rows, std::int64_t of_key_heads) const {
    attention_extents e = *this;
    e.batch = rows;
    e.heads = of_key_heads * group();
    e.key_heads = of_key_heads;
    return e;
  }
  bool operator==(const attention_extents&) const = default;
};

namespace operations {

// A slice of an adjoint is made as large as this allows; one head of keys may take more.
inline constexpr std::int64_t attention_slice_bytes = std::int64_t{256} << 20;

// What forward kernels ask for: a few numbers, whatever the extents (256 bytes of cuDNN 9.14 and 9.19).
inline constexpr std::int64_t attention_library_forward_bytes = 4096;

// A bound on what one call of an adjoint asks for. In order (equal bits from run to run) the scores' gradient is kept in two bytes,
// tiles of 128 each way, which grows with queries times keys; else dq is summed in float, on some devices twice. Beside it a float
// for each query, the gradients of all heads of q where k has fewer, two lengths for each row of the batch, and alignment.
// test/static/operations/attention_library.cpp has what cuDNN asks for.
constexpr std::int64_t attention_library_call_bytes(const attention_extents& e, bool ordered) {
  const auto tiles = [](std::int64_t n) { return (n + 127) / 128 * 128; };
  const std::int64_t all_heads = e.batch * e.heads;
  const std::int64_t sums =
      ordered ? 2 * all_heads * tiles(e.queries) * tiles(e.keys) : 4 * all_heads * (e.queries + tiles(e.queries)) * e.size;
  const std::int64_t grouped = e.heads == e.key_heads ? 0 : 2 * all_heads * e.keys * (e.size + e.value_size);
  return sums + grouped + 4 * all_heads * e.queries + 8 * e.batch + 1024;
}

// Rows of the batch and heads of keys that one call takes: as many as attention_slice_bytes allows, in slices of about one size.
struct attention_slice {
  std::int64_t rows = 0, key_heads = 0;
};
constexpr attention_slice attention_slice_of(const attention_extents& e, bool ordered) {
  const auto even = [](std::int64_t count, std::int64_t bytes_of_one) {
    std::int64_t most = attention_slice_bytes / bytes_of_one;
    most = most < 1 ? 1 : most < count ? most : count;
    const std::int64_t slices = most > 0 ? (count + most - 1) / most : 1;
    return (count + slices - 1) / slices;
  };
  const std::int64_t row = attention_library_call_bytes(e.part(1, e.key_heads), ordered);
  if (row <= attention_slice_bytes) return {even(e.batch, row), e.key_heads};
  return {1, even(e.key_heads, attention_library_call_bytes(e.part(1, 1), ordered))};
}

// A bound on what any slice asks for. Law: it grows with every extent.
constexpr std::int64_t attention_library_adjoint_bytes(const attention_extents& e, bool ordered) {
  const std::int64_t at_once = attention_library_call_bytes(e, ordered);
  const std::int64_t one = attention_library_call_bytes(e.part(1, e.key_heads > 0 ? 1 : 0), ordered);
  const std::int64_t in_slices = one > attention_slice_bytes ? one : attention_slice_bytes;
  return device_scratch::align(at_once < in_slices ? at_once : in_slices);
}
// The same of either order, which is chosen while a program runs.
constexpr std::int64_t attention_library_adjoint_bytes(const attention_extents& e) {
  const std::int64_t x = attention_library_adjoint_bytes(e, true), y = attention_library_adjoint_bytes(e, false);
  return x > y ? x : y;
}

// A tensor of two-byte elements like the result, which stands for it where an adjoint is given delta alone.
constexpr std::int64_t attention_projection_bytes(const attention_extents& e) {
  return device_scratch::align(2 * e.batch * e.heads * e.queries * e.value_size);
}

}  // namespace operations

}  // namespace shardwise::inline v0_1
