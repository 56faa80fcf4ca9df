// SPDX-License-Identifier: Apache-2.0
// Scratch that device kernels need at most, from specs and local extents alone: what the static arena reserves.
#pragma once

#include <shardwise/propagation/contraction.hpp>
#include <shardwise/propagation/attributes.hpp>

namespace shardwise::inline v0_1::runtime {

inline constexpr std::int64_t matmul_workspace_bytes = std::int64_t{32} << 20;  // what cuBLASLt is offered
inline constexpr std::int64_t device_alignment = 256;                           // of every part of the scratch

constexpr std::int64_t align_device(std::int64_t n) {
  return (n + device_alignment - 1) / device_alignment * device_alignment;
}

// --- reductions -----------------------------------------------------------------------------------------------------

// A reduction is cut into `chunks` when one block for each output would leave the device idle; partial sums lie
// [output][chunk] in the scratch. The cut depends on extents only, never on the device: sums are the same on all.
inline constexpr std::int64_t reduction_blocks = 1024;  // blocks that fill any device
inline constexpr std::int64_t row_chunk = 2048;         // elements that are worth a block of their own
inline constexpr std::int64_t column_chunk = 64, column_tile = 32;

inline constexpr std::int64_t norm_dx_dw_blocks = 64;

// Sums of squares that go out together, and the room for as many before others are added to them.
inline constexpr int squares_at_once = 128;
inline constexpr std::int64_t squares_aside_bytes =
    align_device(squares_at_once * static_cast<std::int64_t>(sizeof(double)));

constexpr std::int64_t reduction_chunks(std::int64_t outputs, std::int64_t count, bool columns) {
  if (outputs == 0) return 1;
  const std::int64_t tiles = columns ? (outputs + column_tile - 1) / column_tile : outputs;
  const std::int64_t least = columns ? column_chunk : row_chunk;
  const std::int64_t idle = reduction_blocks / tiles, worth = (count + least - 1) / least;
  const std::int64_t n = idle < worth ? idle : worth;
  return n > 1 ? n : 1;
}

// Law: grows with both arguments, so that the largest shard's bound holds for every shard.
constexpr std::int64_t reduction_workspace_bytes(std::int64_t outputs, std::int64_t count) {
  const std::int64_t worth = (count + column_chunk - 1) / column_chunk;
  if (worth <= 1) return 0;
  const std::int64_t parts = outputs * (worth < reduction_blocks ? worth : reduction_blocks);
  const std::int64_t most = reduction_blocks * column_tile;
  return align_device((parts < most ? parts : most) * static_cast<std::int64_t>(sizeof(double)));
}

// --- einsum ---------------------------------------------------------------------------------------------------------

namespace detail {

struct einsum_operand {
  std::int64_t labels;
  const std::int64_t* ext;
  const std::int64_t* str;
  int rank;
};

// Whether dims labelled `l` then `m` are stepped through as one by `w` (trivially so if it has neither).
constexpr bool steps_as_one(const einsum_operand& w, int l, int m) {
  const int a = rules::find_label(w.labels, w.rank, l), b = rules::find_label(w.labels, w.rank, m);
  return a < 0 || b < 0 || w.str[a] == w.str[b] * w.ext[b];
}

// Which operands have label l: bits 0 lhs, 1 rhs, 2 out.
constexpr int role_of(const einsum_operand* w, int l) {
  int r = 0;
  for (int k = 0; k < 3; ++k) r |= rules::find_label(w[k].labels, w[k].rank, l) >= 0 ? 1 << k : 0;
  return r;
}

// True unless operand k surely has a unit stride along one of its two matrix dims, whatever the shards: its stride-1
// dim belongs to a matrix role whose dims all merge into one.
constexpr bool may_need_copy(const einsum_operand* w, int k) {
  int unit = -1;
  bool trivial = true;
  for (int d = 0; d < w[k].rank; ++d) {
    trivial = trivial && w[k].ext[d] == 1;
    if (w[k].ext[d] != 1 && w[k].str[d] == 0) return true;  // broadcast
    if (w[k].str[d] == 1 && w[k].ext[d] != 1) unit = d;
  }
  if (trivial) return false;
  if (unit < 0) return true;
  const int role = role_of(w, rules::label(w[k].labels, unit));
  if (role == 7) return true;                         // a batch dim
  const einsum_operand& order = w[role & 1 ? 0 : 1];  // the operand in whose order the plan walks this role
  int before = -1;
  for (int d = 0; d < order.rank; ++d) {
    const int l = rules::label(order.labels, d);
    if (role_of(w, l) != role || order.ext[d] == 1) continue;
    if (before >= 0)
      for (int j = 0; j < 3; ++j)
        if (!steps_as_one(w[j], before, l)) return true;
    before = l;
  }
  return false;
}

// Strides of a dense copy of operand k: batch outermost, then the role that one input alone has, contracted dims
// innermost (out: m, n); within a role in the order in which the plan walks it, so that all its dims merge.
constexpr void strides_by_role(const einsum_operand* w, int k, std::int64_t* str) {
  const int roles[3][3] = {{3, 5, 7}, {3, 6, 7}, {6, 5, 7}};  // innermost first
  std::int64_t step = 1;
  for (int role : roles[k]) {
    const einsum_operand& order = w[role & 1 ? 0 : 1];
    for (int d = order.rank - 1; d >= 0; --d) {
      const int l = rules::label(order.labels, d);
      if (role_of(w, l) != role) continue;
      const int own = rules::find_label(w[k].labels, w[k].rank, l);
      str[own] = step;
      step *= w[k].ext[own];
    }
  }
}

constexpr bool is_by_role(const einsum_operand* w, int k) {
  std::int64_t str[max_rank]{};
  strides_by_role(w, k, str);
  for (int d = 0; d < w[k].rank; ++d)
    if (w[k].ext[d] != 1 && w[k].str[d] != str[d]) return false;
  return true;
}

}  // namespace detail

// cuBLASLt's scratch, then dense copies of those operands that no matrix layout may describe. A role's dims merge only
// if all its operands step alike, so an operand brings those of its innermost role with it: lhs and rhs k, out n.
constexpr std::int64_t einsum_device_bytes(const op_attr& a, const spec& x, const spec& y, const spec& out,
                                           const std::int64_t* ex, const std::int64_t* ey) {
  const auto of = attributes_of<einsum_attributes>(a);
  const detail::einsum_operand w[3] = {{of.lhs, x.extent, x.stride, x.rank},
                                       {of.rhs, y.extent, y.stride, y.rank},
                                       {of.out, out.extent, out.stride, out.rank}};
  std::int64_t numel[3] = {1, 1, 1};
  for (int d = 0; d < x.rank; ++d) numel[0] *= ex[d];
  for (int d = 0; d < y.rank; ++d) numel[1] *= ey[d];
  for (int d = 0; d < out.rank; ++d) {
    const int l = rules::label(of.out, d), in_x = rules::find_label(of.lhs, x.rank, l);
    numel[2] *= in_x >= 0 ? ex[in_x] : ey[rules::find_label(of.rhs, y.rank, l)];
  }
  const bool inputs = detail::may_need_copy(w, 0) || detail::may_need_copy(w, 1), result = detail::may_need_copy(w, 2);
  const bool copied[3] = {inputs, inputs || result, result};
  std::int64_t bytes = matmul_workspace_bytes;
  for (int k = 0; k < 3; ++k)
    if (copied[k] && !detail::is_by_role(w, k)) bytes += align_device(numel[k] * static_cast<std::int64_t>(size_of(x.type)));
  return bytes;
}

// --- every node -----------------------------------------------------------------------------------------------------

// Operations that are given scratch at all.
constexpr bool needs_device_workspace(op_code op) {
  return op == op_code::einsum || op == op_code::sum || op == op_code::sumsq || op == op_code::norm_dw ||
         op == op_code::vector_norm || op == op_code::amax || op == op_code::amin || op == op_code::prod ||
         op == op_code::scatter_dsrc || op == op_code::norm_dw_db || op == op_code::norm_dx_dw;
}

// x is a node's first operand, y its last; `ex`, `ey` are their local extents on the ranks at coordinate 0.
constexpr std::int64_t device_workspace_bytes(op_code op, const op_attr& a, const spec& x, const spec& y, const spec& out,
                                              const std::int64_t* ex, const std::int64_t* ey) {
  // what cuBLASLt is offered is more than the sum beside a product needs
  if (op == op_code::einsum) return einsum_device_bytes(a, x, y, out, ex, ey);
  std::int64_t outputs = 1, count = 1;
  if (op == op_code::sum || op == op_code::sumsq || op == op_code::vector_norm || op == op_code::amax ||
      op == op_code::amin || op == op_code::prod) {
    const std::int64_t dims = attributes_of<extent_one_attributes>(a).dims;  // the first word of all of these
    for (int d = 0; d < x.rank; ++d) ((dims >> d) & 1 ? count : outputs) *= ex[d];
    return (op == op_code::sumsq ? squares_aside_bytes : 0) + reduction_workspace_bytes(outputs, count);
  }
  if (op == op_code::norm_dx_dw)  // two sums a column of each team of at most four in a block
    return align_device(norm_dx_dw_blocks * 4 * 2 * ex[x.rank - 1] * static_cast<std::int64_t>(sizeof(double)));
  if (op == op_code::scatter_dsrc) {  // the last writer of each place
    for (int d = 0; d < x.rank; ++d) count *= ex[d];
    return align_device(count * static_cast<std::int64_t>(sizeof(std::int32_t)));
  }
  if (op == op_code::norm_dw || op == op_code::norm_dw_db) {  // which makes two sums at once
    for (int d = 0; d < x.rank; ++d) (d + 1 < x.rank ? count : outputs) *= ex[d];
    return (op == op_code::norm_dw_db ? 2 : 1) * reduction_workspace_bytes(outputs, count);
  }
  return 0;
}

}  // namespace shardwise::inline v0_1::runtime
