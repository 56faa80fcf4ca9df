// SPDX-License-Identifier: Apache-2.0
// where_faster: fusions that a device's table of times says are faster than what they replace.
#pragma once

#include <shardwise/pass/analysis/nearest_rows.hpp>
#include <shardwise/pass/fuse/worth.hpp>
#include <shardwise/pass/tune/times.hpp>
#include <shardwise/propagation/contraction.hpp>

namespace shardwise::inline v0_1::passes {

// The mean of the four measured rows that are nearest, the nearer the more: distances are those of the sizes' logarithms, of a fourth
// size, how many there are, three times that. 0: none.
template <class Row, std::size_t Rows, std::size_t Dims, class Figure>
constexpr double estimated_permille(const Row (&rows)[Rows], const std::int64_t (&shape)[Dims], Figure&& figure) {
  double at[Dims]{};
  for (std::size_t k = 0; k < Dims; ++k) at[k] = log2_of(shape[k]);
  nearest_rows near;
  for (std::size_t r = 0; r < Rows; ++r) {
    if (figure(rows[r]) == 0) continue;
    double d = 0;
    for (std::size_t k = 0; k < Dims; ++k) {
      const double apart = (k < 3 ? 1 : 3) * (at[k] - log2_of(rows[r].shape[k]));
      d += apart * apart;
    }
    near.add(static_cast<int>(r), d);
  }
  return near.mean([&](int r) { return figure(rows[r]); });
}

// What a table leaves open is not fused: products of a batch, integers. Sizes are a rank's, of run-time extents the largest.
template <class Device>
struct where_faster {
  // A figure above it is no gain that the measurement can tell from none.
  static constexpr double worth_permille = 975;

  template <class Graph>
  static constexpr bool merges(const Graph& g, int leader, int count, merged_kind kind, int shared) {
    const int column = column_of(g.spec_of(leader).type);
    if (column < 0) return false;
    const node& n = g.nodes[leader];
    const auto a = attributes_of<einsum_attributes>(n.a);
    const spec &x = g.spec_of(n.in[0]), &y = g.spec_of(n.in[1]), &z = g.specs[n.spec];
    const std::int64_t contracted = role(x, a.lhs, a.rhs, y.rank, true, a.out, z.rank, false),
                       batch = role(x, a.lhs, a.rhs, y.rank, true, a.out, z.rank, true),
                       of_x = role(x, a.lhs, a.rhs, y.rank, false, a.out, z.rank, true),
                       of_y = role(y, a.rhs, a.lhs, x.rank, false, a.out, z.rank, true);
    if (batch != 1) return false;
    const std::int64_t own = shared == 0 ? of_x : of_y, others = shared == 0 ? of_y : of_x;
    const std::int64_t shapes[3][4] = {
        {own, contracted, others, count}, {contracted, own, others, count}, {of_x, of_y, contracted, count}};
    const double p = estimated_permille(Device::products, shapes[static_cast<int>(kind)], [&](const merged_products& r) {
      return static_cast<double>(r.permille[column][static_cast<int>(kind)]);
    });
    return p > 0 && p < worth_permille;
  }

  template <class Graph>
  static constexpr bool joins(const Graph&, const spec& x) {
    return gains_by_rows(Device::norms, x);
  }
  template <class Graph>
  static constexpr bool joins_loss(const Graph&, const spec& logits) {
    return gains_by_rows(Device::losses, logits);
  }

 private:
  // Of rows along the last dim.
  template <class Row, std::size_t Rows>
  static constexpr bool gains_by_rows(const Row (&rows)[Rows], const spec& x) {
    const int column = x.type == dtype::f32 ? 0 : x.type == dtype::f64 ? 1 : is_low_precision(x.type) ? 2 : -1;
    if (column < 0 || x.rank == 0) return false;
    std::int64_t shape[2] = {1, 1};
    for (int d = 0; d < x.rank; ++d) shape[d + 1 < x.rank ? 0 : 1] *= size(x, d);
    const double p = estimated_permille(rows, shape, [&](const Row& r) { return static_cast<double>(r.permille[column]); });
    return p > 0 && p < worth_permille;
  }
  static constexpr int column_of(dtype t) {
    return t == dtype::f32 ? (Device::tf32 ? 1 : 0) : t == dtype::f64 ? 2 : is_low_precision(t) ? 3 : -1;
  }
  static constexpr std::int64_t size(const spec& s, int d) {
    constexpr int origin[max_axes]{};
    return local_interval(s, d, origin).size;
  }
  // Elements along those dims of s that the other operand has, or has not, and the result likewise.
  static constexpr std::int64_t role(const spec& s, std::int64_t own, std::int64_t other, int other_rank, bool in_other,
                                     std::int64_t out, int out_rank, bool in_out) {
    std::int64_t n = 1;
    for (int d = 0; d < s.rank; ++d) {
      const int l = rules::label(own, d);
      if ((rules::find_label(other, other_rank, l) >= 0) == in_other && (rules::find_label(out, out_rank, l) >= 0) == in_out)
        n *= size(s, d);
    }
    return n;
  }
};

}  // namespace shardwise::inline v0_1::passes
