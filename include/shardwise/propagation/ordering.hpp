// SPDX-License-Identifier: Apache-2.0
// Rules of largest, smallest and product over dims, of searches along the last dim, and of rows whose classes are
// sharded.
#pragma once

#include <shardwise/propagation/reduction.hpp>

namespace shardwise::inline v0_1::rules {

// A reduction that keeps its dims with extent 1, as sum's attributes.
constexpr op_attr kept_dims(const op_attr& a) {
  const std::int64_t dims = attributes_of<extent_one_attributes>(a).dims;
  return pack_attributes(sum_attributes{.dims = dims, .kept = dims, .mean = 0});
}

// Over a sharded dim every rank has the reduction of its own elements: partial with that reduction. A partial operand
// is admitted with the same reduction only: the largest of the ranks' largest is the largest. (DTensor keeps any
// partial, which is wrong for, say, the largest of sums.)
constexpr rule_rows extreme_rows(const op_attr& a, const spec& x, reduction op) {
  const std::int64_t dims = attributes_of<extent_one_attributes>(a).dims;
  const placement p = partial_value(op);
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  t.push_back(rows::all(rows::U, rows::U));
  for (int d = 0; d < x.rank; ++d) t.push_back(rows::all(rows::S(d), in_mask(dims, d) ? p : rows::S(d)));
  t.push_back(rows::all(p, p));
  return t;
}

// Operands: cotangent, x. A partial product has no adjoint.
constexpr rule_rows prod_dx_rows(const op_attr& a, const spec& x) {
  const std::int64_t dims = attributes_of<extent_one_attributes>(a).dims;
  using namespace rows;
  rule_rows t;
  t.push_back(all(R, R));
  t.push_back({{P, U}, P});
  for (int d = 0; d < x.rank; ++d)
    if (!in_mask(dims, d)) t.push_back(all(S(d), S(d)));
  return t;
}

// Operand `sharded` holds classes of the rows (its last dim); the others hold the rows' numbers on every rank.
constexpr rule_row classes_sharded(int rank, int sharded, placement out) {
  rule_row r = rows::all(rows::U, out);
  r.in[sharded] = rows::S(rank - 1);
  return r;
}

constexpr spec with_last(const spec& x, std::int64_t extent) {
  spec s = contiguous(x);
  set_extent(s, s.rank - 1, extent);
  make_contiguous(s);
  return s;
}

// The dims along which an operation takes largest or smallest elements, which of none there are not, as a mask.
constexpr std::int64_t dims_of_extremes(op_code op, const op_attr& a, int rank) {
  if (op == op_code::topk) return std::int64_t{1} << (rank - 1);
  return op == op_code::amax || op == op_code::amin ? attributes_of<extent_one_attributes>(a).dims : 0;
}

constexpr outcome topk_shape(const op_attr& a, const spec& x) {
  const std::int64_t count = attributes_of<topk_attributes>(a).count;
  if (x.rank < 1) return fail(problem::dim_out_of_range, x);
  const std::int64_t n = x.extent[x.rank - 1];
  const std::int64_t least = number_at(n, dyn_sizes(x, x.rank - 1), x.dyn_bound, {1, 1, 1, 1});  // resize wants one at least
  if (count < 1 || count > least) return fail(problem::topk_count, x, 0, x.rank - 1, count, least);
  outcome r{{}, with_last(x, count)};
  r.out.type = dtype::i32;
  return r;
}

constexpr outcome take_shape(const spec& x, const spec& index) {
  outcome r{{}, contiguous(index)};
  r.out.type = x.type;
  if (x.rank < 1 || index.rank != x.rank) return fail(problem::dim_out_of_range, x, 1, -1, index.rank, x.rank);
  for (int d = 0; d + 1 < x.rank; ++d)
    if (index.extent[d] != x.extent[d]) return fail(problem::broadcast_extents, x, 1, d, index.extent[d], x.extent[d]);
    else if (!same_extent(index, d, x, d)) return fail(problem::dyn_meets_static, x, 1, d);
  return r;
}

}  // namespace shardwise::inline v0_1::rules
