// SPDX-License-Identifier: Apache-2.0
// Elementwise rules: broadcasting from the right; operands sharded alike; partial only where the operation is linear.
#pragma once

#include <shardwise/propagation/rule.hpp>

namespace shardwise::inline v0_1::rules {

// The dim of `s` that lines up with dim `d` of a result of rank `rank`, or -1 where s is broadcast there.
constexpr int aligned_dim(const spec& s, int rank, int d, std::int64_t extent) {
  const int own = d - (rank - s.rank);
  return own < 0 || (s.extent[own] == 1 && extent != 1) ? -1 : own;
}

constexpr outcome broadcast_shape(const spec* in, int n) {
  outcome r{{}, scalar_like(in[0])};
  int rank = 0;
  for (int k = 0; k < n; ++k) rank = in[k].rank > rank ? in[k].rank : rank;
  r.out.rank = static_cast<std::uint8_t>(rank);
  for (int d = 0; d < rank; ++d) {
    std::int64_t e = 1;
    unsigned sizes = 0;
    for (int k = 0; k < n; ++k) {
      const int own = d - (rank - in[k].rank);
      if (own < 0) continue;
      const std::int64_t x = in[k].extent[own];
      if (x != 1 && e != 1 && x != e) return fail(problem::broadcast_extents, in[0], k, own, x, e);
      if (x == 1) continue;
      if (e != 1 && dyn_sizes(in[k], own) != sizes) return fail(problem::dyn_meets_static, in[0], k, own);
      e = x;
      sizes = dyn_sizes(in[k], own);
      copy_extent(r.out, d, in[k], own);
    }
    r.out.extent[d] = e;
  }
  make_contiguous(r.out);
  return r;
}

// In which floating-point operands an operation is linear: in none; in the first, whatever the others are; in all of them
// together (add); in each, whatever the others are (mul).
enum class linearity { none, first, joint, each };

constexpr rule_rows pointwise_rows(const spec* in, int n, const spec& out, linearity lin) {
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  t.push_back(rows::all(rows::U, rows::U));
  for (int d = 0; d < out.rank; ++d) {
    rule_row r{};
    for (int k = 0; k < n; ++k) {
      const int own = aligned_dim(in[k], out.rank, d, out.extent[d]);
      r.in[k] = own < 0 ? (is_floating(in[k].type) ? rows::U : rows::R) : rows::S(own);
    }
    r.out = rows::S(d);
    t.push_back(r);
  }
  if (lin == linearity::joint) t.push_back(rows::all(rows::P, rows::P));
  if (lin == linearity::first || lin == linearity::each)
    for (int k = 0; k < (lin == linearity::each ? n : 1); ++k) {
      rule_row r = rows::all(rows::U, rows::P);
      r.in[k] = rows::P;
      t.push_back(r);
    }
  return t;
}

// Which sentence fits best when no row does.
constexpr problem pointwise_problem(const spec* in, int n, const spec& out, int axis, linearity lin) {
  int partials = 0;
  for (int k = 0; k < n; ++k) partials += in[k].place[axis].is_partial() ? 1 : 0;
  if (partials > 0) {
    if (lin == linearity::joint && partials < n) return problem::partial_add;
    // the factor, or divisor, is not reduced
    if (partials == 1 && n > 1 && (lin == linearity::each || (lin == linearity::first && in[0].place[axis].is_partial())))
      return problem::pointwise_placements;
    return problem::partial_nonlinear;
  }
  for (int d = 0; d < out.rank; ++d) {
    bool shards = false, broadcast_replicate = false, other = false;
    for (int k = 0; k < n; ++k) {
      const int own = aligned_dim(in[k], out.rank, d, out.extent[d]);
      const placement p = as_row_entry(in[k], axis);
      if (own >= 0 && p.is_shard(own)) shards = true;
      else if (own < 0 && p.is_replicate()) broadcast_replicate = true;
      else if (!(own < 0 && p.is_reduced())) other = true;
    }
    if (shards && broadcast_replicate && !other) return problem::pointwise_needs_reduced;
  }
  return problem::pointwise_placements;
}

}  // namespace shardwise::inline v0_1::rules
