// SPDX-License-Identifier: Apache-2.0
// Scratch that device kernels and collectives of two-byte elements ask for, and which of their calls go out in one launch.
#include <shardwise/operations/all.hpp>
#include <shardwise/pass/analysis/kernels.hpp>
#include <shardwise/runtime/cuda/collective_workspace.hpp>

namespace {

namespace sw = shardwise;
using sw::op_code, sw::dtype;

constexpr sw::spec matrix(dtype type, std::int64_t rows, std::int64_t columns, sw::placement place, int ranks) {
  sw::spec s{};
  s.type = type;
  s.rank = 2;
  s.extent[0] = rows;
  s.extent[1] = columns;
  sw::make_contiguous(s);
  s.axes = 1;
  s.axis_size[0] = ranks;
  s.place[0] = place;
  return s;
}

// Of a redistribution of an 8 x 6 matrix that is partial over 2 ranks.
constexpr std::int64_t scratch(dtype type, sw::reduction op, sw::placement to) {
  const sw::spec in = matrix(type, 8, 6, sw::partial_value(op), 2), out = matrix(type, 8, 6, to, 2);
  sw::node n{};
  n.op = op_code::redistribute;
  n.a = sw::pack_attributes(sw::redistribute_attributes{.axis = 0, .to = sw::pack(to)});
  const std::int64_t ex[sw::max_rank] = {8, 6};
  return sw::device_collective_workspace_bytes(n, in, out, ex);
}
constexpr std::int64_t elements = 8 * 6;

// Sums travel as they are; extremes of two-byte elements as keys of four, since a key is a float's.
static_assert(scratch(dtype::bf16, sw::reduction::sum, sw::replicate_value()) == 0);
static_assert(scratch(dtype::f32, sw::reduction::max, sw::replicate_value()) == 0);
static_assert(scratch(dtype::bf16, sw::reduction::max, sw::replicate_value()) == elements * 4);
static_assert(scratch(dtype::f16, sw::reduction::min, sw::replicate_value()) == elements * 4);
static_assert(scratch(dtype::f32, sw::reduction::max, sw::shard_value(0)) == elements * 4);
// the operand's keys, the result's, and, where the parts are columns, its rows put together piece by piece
static_assert(scratch(dtype::bf16, sw::reduction::max, sw::shard_value(0)) == elements * 4 + elements / 2 * 4);
static_assert(scratch(dtype::bf16, sw::reduction::max, sw::shard_value(1)) ==
              elements * 4 + elements / 2 * 4 + elements * 2);
static_assert(scratch(dtype::bf16, sw::reduction::sum, sw::shard_value(1)) == elements * 2);

// Sums by index of two-byte elements are floats while they grow.
constexpr std::int64_t sums(op_code op, dtype type) {
  const sw::spec out = matrix(type, 100, 6, sw::replicate_value(), 1);
  return sw::operation_of(op).device_scratch.value({}, nullptr, 0, out);
}
static_assert(sums(op_code::scatter_add, dtype::f32) == 0 && sums(op_code::index_add, dtype::f64) == 0);
static_assert(sums(op_code::scatter_add, dtype::bf16) >= 100 * 6 * 4 && sums(op_code::index_add, dtype::f16) >= 100 * 6 * 4);

// One kernel adds squares of several tensors, if their elements are of one type.
constexpr bool together(dtype a, dtype b) {
  sw::graph<4, 4> g{};
  g.specs[0] = matrix(a, 8, 6, sw::replicate_value(), 1);
  g.specs[1] = matrix(b, 8, 6, sw::replicate_value(), 1);
  g.specs[2].type = dtype::f32;
  g.spec_count = 3;
  for (int i = 0; i < 2; ++i) {
    g.nodes[i].op = op_code::input;
    g.nodes[i].spec = static_cast<std::int16_t>(i);
    g.nodes[2 + i].op = op_code::sumsq;
    g.nodes[2 + i].inputs = 1;
    g.nodes[2 + i].in[0] = static_cast<std::int16_t>(i);
    g.nodes[2 + i].spec = 2;
  }
  g.node_count = 4;
  return sw::passes::starts_together(g, 2, 3);
}
static_assert(together(dtype::f32, dtype::f32) && together(dtype::bf16, dtype::bf16));
static_assert(!together(dtype::f32, dtype::bf16) && !together(dtype::f16, dtype::bf16));

}  // namespace
