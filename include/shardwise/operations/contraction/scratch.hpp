// SPDX-License-Identifier: Apache-2.0
// Scratch of products: packed panels on hosts; on devices what cuBLASLt is offered, and dense copies of operands.
#pragma once

#include <cstddef>

#include <shardwise/propagation/scratch.hpp>
#include <shardwise/propagation/contraction.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

// --- hosts: the panels of runtime/host/gemm.hpp ----------------------------------------------------------------------------

namespace gemm_panels {

inline constexpr long max_depth = 512;     // deep blocks: each further block reads and writes all of C once more
inline constexpr long width_bytes = 2048;  // columns of B packed at once
inline constexpr long row_gap = 16;        // keeps the rows of a packed A block out of one cache set
inline constexpr long widest_bytes = 128;

constexpr long round_up(long x, long to) { return (x + to - 1) / to * to; }
constexpr long smaller(long x, long y) { return x < y ? x : y; }

// Depth of the blocks that k is cut into: a function of k alone, see the law of gemm. It does not grow with k: a smaller k may
// take deeper ones, so what they need is counted by deepest, which does.
constexpr long depth_of(long k) {
  const long blocks = (k + max_depth - 1) / max_depth;
  return blocks < 2 ? k : round_up((k + blocks - 1) / blocks, 8);
}
constexpr long deepest(long k) { return smaller(k, max_depth); }

template <class T>
inline constexpr long max_width = width_bytes / long{sizeof(T)};

// Rows of A between two passes over B, a multiple of every tile height: the block takes 192 KiB.
template <class T>
inline constexpr long max_height = 384 / long{sizeof(T)};

template <class T>
constexpr long packed_b(long n, long k) {
  return smaller(round_up(n, widest_bytes / long{sizeof(T)}), max_width<T>) * deepest(k);
}

template <class T>
constexpr long packed_a(long m, long k) {
  return smaller(m, max_height<T>) * (deepest(k) + row_gap);
}

}  // namespace gemm_panels

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// An upper bound for every CPU and all strides, monotone in its three sizes; the product touches no byte behind it.
template <class T>
constexpr std::size_t gemm_workspace_bytes(long m, long n, long k) {
  using namespace gemm_panels;
  if (m <= 0 || n <= 0 || k <= 0) return 0;
  const long as_is = packed_b<T>(n, k) + packed_a<T>(m, k);
  const long swapped = packed_b<T>(m, k) + packed_a<T>(n, k);
  return static_cast<std::size_t>(as_is < swapped ? swapped : as_is) * sizeof(T);
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

// --- devices ----------------------------------------------------------------------------------------------------------------

namespace device_scratch {

inline constexpr std::int64_t product_bytes = std::int64_t{32} << 20;  // what cuBLASLt is offered

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

}  // namespace device_scratch

namespace operations {

// The sizes of einsum's largest product over blocks: contracted k, rows m and columns n, batch dims among the rows.
constexpr std::int64_t einsum_host_scratch(const op_attr& a, const spec* const* in, int, const spec& out) {
  const spec &x = *in[0], &y = *in[1];
  const largest_block bx(x), by(y);
  std::int64_t m = 1, n = 1, k = 1;
  const auto of = attributes_of<einsum_attributes>(a);
  for (int d = 0; d < x.rank; ++d) {
    const int l = rules::label(of.lhs, d);
    const bool in_y = rules::find_label(of.rhs, y.rank, l) >= 0;
    const bool in_out = rules::find_label(of.out, out.rank, l) >= 0;
    if (!in_y) m *= bx.extent[d];
    else if (!in_out) k *= bx.extent[d];
  }
  for (int d = 0; d < y.rank; ++d)
    if (rules::find_label(of.lhs, x.rank, rules::label(of.rhs, d)) < 0) n *= by.extent[d];
  const auto most = []<class T>(T, std::int64_t rows, std::int64_t columns, std::int64_t depth) {
    const std::size_t straight = host::gemm_workspace_bytes<T>(rows, columns, depth),
                      turned = host::gemm_workspace_bytes<T>(columns, rows, depth);
    return static_cast<std::int64_t>(straight > turned ? straight : turned);
  };
  return x.type == dtype::f64 ? most(double{}, m, n, k) : most(float{}, m, n, k);
}

// What cuBLASLt is offered, then dense copies of those operands that no matrix layout may describe. A role's dims merge only
// if all its operands step alike, so an operand brings those of its innermost role with it: lhs and rhs k, out n. The sum
// beside a product needs less.
constexpr std::int64_t einsum_device_scratch(const op_attr& a, const spec* const* in, int, const spec& out) {
  using namespace device_scratch;
  const spec &x = *in[0], &y = *in[1];
  const largest_block bx(x), by(y);
  const auto of = attributes_of<einsum_attributes>(a);
  const einsum_operand w[3] = {{of.lhs, x.extent, x.stride, x.rank},
                               {of.rhs, y.extent, y.stride, y.rank},
                               {of.out, out.extent, out.stride, out.rank}};
  std::int64_t numel[3] = {1, 1, 1};
  for (int d = 0; d < x.rank; ++d) numel[0] *= bx.extent[d];
  for (int d = 0; d < y.rank; ++d) numel[1] *= by.extent[d];
  for (int d = 0; d < out.rank; ++d) {
    const int l = rules::label(of.out, d), in_x = rules::find_label(of.lhs, x.rank, l);
    numel[2] *= in_x >= 0 ? bx.extent[in_x] : by.extent[rules::find_label(of.rhs, y.rank, l)];
  }
  const bool inputs = may_need_copy(w, 0) || may_need_copy(w, 1), result = may_need_copy(w, 2);
  const bool copied[3] = {inputs, inputs || result, result};
  std::int64_t bytes = product_bytes;
  for (int k = 0; k < 3; ++k)
    if (copied[k] && !is_by_role(w, k)) bytes += align(numel[k] * static_cast<std::int64_t>(size_of(x.type)));
  return bytes;
}

}  // namespace operations

}  // namespace shardwise::inline v0_1
