// SPDX-License-Identifier: Apache-2.0
// The contraction rule: one table for matmul, batched matmul, linear and every adjoint of theirs, over labelled dims.
#pragma once

#include <shardwise/propagation/rule.hpp>

namespace shardwise::inline v0_1::rules {

constexpr int label(std::int64_t packed, int dim) { return static_cast<int>((packed >> (4 * dim)) & 15); }

constexpr int find_label(std::int64_t packed, int rank, int l) {
  for (int d = 0; d < rank; ++d)
    if (label(packed, d) == l) return d;
  return -1;
}

constexpr int label_count(std::int64_t packed) {
  int n = 0;
  while (n < 16 && label(packed, n) != 0) ++n;
  return n;
}

// The dims of lhs that are summed over, as a mask.
constexpr std::int64_t contracted_dims(const op_attr& a, int lhs_rank, int rhs_rank) {
  const auto labels = attributes_of<einsum_attributes>(a);
  std::int64_t mask = 0;
  for (int d = 0; d < lhs_rank; ++d) {
    const int l = label(labels.lhs, d);
    if (find_label(labels.rhs, rhs_rank, l) >= 0 && find_label(labels.out, label_count(labels.out), l) < 0)
      mask |= std::int64_t{1} << d;
  }
  return mask;
}

// Whether the label of a dim of one operand stands in the other or in the result: in a graph that something has broken it may not.
constexpr bool is_used(std::int64_t other, int other_rank, std::int64_t result, int l) {
  return find_label(other, other_rank, l) >= 0 || find_label(result, label_count(result), l) >= 0;
}

constexpr outcome einsum_shape(const op_attr& a, const spec* in) {
  const auto labels = attributes_of<einsum_attributes>(a);
  outcome r{{}, scalar_like(in[0])};
  const int rank = label_count(labels.out);
  if (rank > max_rank) return fail(problem::rank_too_large, in[0], 0, -1, rank, max_rank);
  r.out.rank = static_cast<std::uint8_t>(rank);
  for (int d = 0; d < rank; ++d) {
    const int l = label(labels.out, d);
    const int da = find_label(labels.lhs, in[0].rank, l), db = find_label(labels.rhs, in[1].rank, l);
    const spec& src = da >= 0 ? in[0] : in[1];
    const int ds = da >= 0 ? da : db;
    if (ds < 0) return fail(problem::contraction_extents, in[0], 0, -1);
    copy_extent(r.out, d, src, ds);
  }
  for (int d = 0; d < in[0].rank; ++d) {
    const int l = label(labels.lhs, d), db = find_label(labels.rhs, in[1].rank, l);
    if (!is_used(labels.rhs, in[1].rank, labels.out, l)) return fail(problem::contraction_extents, r.out, 0, d);
    if (db >= 0 && in[0].extent[d] != in[1].extent[db])
      return fail(find_label(labels.out, rank, l) >= 0 ? problem::contraction_batch : problem::contraction_extents, r.out, 0,
                  d, in[0].extent[d], in[1].extent[db]);
    if (db >= 0 && !same_extent(in[0], d, in[1], db)) return fail(problem::dyn_meets_static, r.out, 1, db);
  }
  for (int d = 0; d < in[1].rank; ++d)
    if (!is_used(labels.lhs, in[0].rank, labels.out, label(labels.rhs, d)))
      return fail(problem::contraction_extents, r.out, 1, d);
  make_contiguous(r.out);
  return r;
}

// Closed under differentiation: if (a, b) -> c is a row, then (dual c, b) -> dual a and (dual c, a) -> dual b are.
constexpr rule_rows einsum_rows(const op_attr& a, const spec* in) {
  const auto labels = attributes_of<einsum_attributes>(a);
  using namespace rows;
  rule_rows t;
  t.push_back(all(R, R));
  t.push_back(all(U, U));
  const int rank = label_count(labels.out);
  for (int d = 0; d < in[0].rank; ++d) {
    const int l = label(labels.lhs, d);
    const int db = find_label(labels.rhs, in[1].rank, l), dc = find_label(labels.out, rank, l);
    if (db >= 0) t.push_back({{S(d), S(db)}, dc >= 0 ? S(dc) : P});  // a batch dim, or a contracted one
    else t.push_back({{S(d), U}, S(dc)});
  }
  for (int d = 0; d < in[1].rank; ++d) {
    const int l = label(labels.rhs, d);
    if (find_label(labels.lhs, in[0].rank, l) < 0) t.push_back({{U, S(d)}, S(find_label(labels.out, rank, l))});
  }
  t.push_back({{P, U}, P});
  t.push_back({{U, P}, P});
  return t;
}

constexpr problem einsum_problem(const op_attr& a, const spec* in, int axis, bool split_differs) {
  if (split_differs) return problem::contraction_split;
  const auto labels = attributes_of<einsum_attributes>(a);
  const std::int64_t of[2] = {labels.lhs, labels.rhs};
  const int rank = label_count(labels.out);
  for (int k = 0; k < 2; ++k) {
    const placement p = in[k].place[axis], q = in[1 - k].place[axis];
    if (!p.is_shard()) continue;
    const int l = label(of[k], p.dim);
    const bool shared = find_label(of[1 - k], in[1 - k].rank, l) >= 0;
    if (shared && find_label(labels.out, rank, l) < 0) return problem::contraction_one_sided;
    if (!shared && q.is_replicate()) return problem::contraction_needs_reduced;
  }
  return problem::contraction_placements;
}

}  // namespace shardwise::inline v0_1::rules
