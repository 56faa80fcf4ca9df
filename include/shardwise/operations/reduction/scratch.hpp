// SPDX-License-Identifier: Apache-2.0
// Scratch of reductions on devices: how a sum is cut into chunks, and the room that their partial sums take.
#pragma once

#include <shardwise/propagation/attributes.hpp>
#include <shardwise/propagation/scratch.hpp>

namespace shardwise::inline v0_1 {

namespace device_scratch {

// A reduction is cut into `chunks` when one block for each output would leave the device idle; partial sums lie
// [output][chunk] in the scratch. The cut depends on extents only, never on the device: sums are the same on all.
inline constexpr std::int64_t reduction_blocks = 1024;  // blocks that fill any device
inline constexpr std::int64_t row_chunk = 2048;         // elements that are worth a block of their own
inline constexpr std::int64_t column_chunk = 64, column_tile = 32;

// Sums of squares that go out together, the room for as many before others are added to them, and that for parts of them.
inline constexpr int squares_at_once = 128;
inline constexpr std::int64_t square_parts = 8192;
inline constexpr std::int64_t square_parts_begin = align(squares_at_once * static_cast<std::int64_t>(sizeof(double)));
inline constexpr std::int64_t squares_aside_bytes =
    square_parts_begin + align(square_parts * static_cast<std::int64_t>(sizeof(double)));

constexpr std::int64_t reduction_chunks(std::int64_t outputs, std::int64_t count, bool columns) {
  if (outputs == 0) return 1;
  const std::int64_t tiles = columns ? (outputs + column_tile - 1) / column_tile : outputs;
  const std::int64_t least = columns ? column_chunk : row_chunk;
  const std::int64_t idle = reduction_blocks / tiles, worth = (count + least - 1) / least;
  const std::int64_t n = idle < worth ? idle : worth;
  return n > 1 ? n : 1;
}

// Law: grows with both arguments, so that the largest shard's bound holds for every shard.
constexpr std::int64_t reduction_bytes(std::int64_t outputs, std::int64_t count) {
  const std::int64_t worth = (count + column_chunk - 1) / column_chunk;
  if (worth <= 1) return 0;
  const std::int64_t parts = outputs * (worth < reduction_blocks ? worth : reduction_blocks);
  const std::int64_t most = reduction_blocks * column_tile;
  return align((parts < most ? parts : most) * static_cast<std::int64_t>(sizeof(double)));
}

}  // namespace device_scratch

namespace operations {

// Partial sums over the dims that the attributes' first word names, which all reductions have there.
constexpr std::int64_t reduction_device_scratch(const op_attr& a, const spec* const* in, int, const spec&) {
  const largest_block x(*in[0]);
  const std::int64_t dims = attributes_of<extent_one_attributes>(a).dims;
  std::int64_t outputs = 1, count = 1;
  for (int d = 0; d < in[0]->rank; ++d) ((dims >> d) & 1 ? count : outputs) *= x.extent[d];
  return device_scratch::reduction_bytes(outputs, count);
}
// Also room for sums that go out together.
constexpr std::int64_t sumsq_device_scratch(const op_attr& a, const spec* const* in, int n, const spec& out) {
  return device_scratch::squares_aside_bytes + reduction_device_scratch(a, in, n, out);
}

// Partial sums over all dims but the last, `Sums` of them at once.
template <int Sums>
constexpr std::int64_t columns_device_scratch(const op_attr&, const spec* const* in, int, const spec&) {
  const largest_block x(*in[0]);
  std::int64_t outputs = 1, count = 1;
  for (int d = 0; d < in[0]->rank; ++d) (d + 1 < in[0]->rank ? count : outputs) *= x.extent[d];
  return Sums * device_scratch::reduction_bytes(outputs, count);
}

}  // namespace operations

}  // namespace shardwise::inline v0_1
