// SPDX-License-Identifier: Apache-2.0
// Rules of joins and of broadcast views: tensors side by side along one dim, and dims of extent 1 seen as longer ones.
#pragma once

#include <shardwise/propagation/extents.hpp>
#include <shardwise/propagation/rule.hpp>

namespace shardwise::inline v0_1::rules {

// --- cat: operands lie side by side along a dim -----------------------------------------------------------

constexpr int joined_dim(const op_attr& a) { return static_cast<int>(attributes_of<cat_attributes>(a).dim); }

constexpr outcome cat_shape(const op_attr& a, const spec* in, int n) {
  const spec& x = in[0];
  const int dim = joined_dim(a);
  if (dim < 0 || dim >= x.rank) return fail(problem::dim_out_of_range, x, 0, dim, dim, x.rank);
  outcome r{{}, contiguous(x)};
  for (int k = 0; k < n; ++k) {
    if (is_dyn(in[k], dim)) return fail(problem::dyn_dim_changed, x, k, dim);
    if (in[k].rank != x.rank) return fail(problem::cat_shapes, x, k, -1, in[k].rank, x.rank);
    for (int d = 0; d < x.rank; ++d)
      if (d != dim && !same_extent(in[k], d, x, d)) return fail(problem::cat_shapes, x, k, d, in[k].extent[d], x.extent[d]);
    if (k > 0) r.out.extent[dim] += in[k].extent[dim];
  }
  make_contiguous(r.out);
  return r;
}

// Joining moves elements, so it commutes with every reduction of the ranks' shares.
constexpr rule_rows cat_rows(const op_attr& a, const spec& x) {
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  t.push_back(rows::all(rows::U, rows::U));
  for (int d = 0; d < x.rank; ++d)
    if (d != joined_dim(a)) t.push_back(rows::all(rows::S(d), rows::S(d)));
  for (reduction op : {reduction::sum, reduction::avg, reduction::product, reduction::max, reduction::min})
    t.push_back(rows::all(partial_value(op), partial_value(op)));
  return t;
}

constexpr problem cat_problem(const op_attr& a, const spec* in, int n, int axis) {
  for (int k = 0; k < n; ++k)
    if (in[k].place[axis].is_shard(joined_dim(a))) return problem::cat_dim_sharded;
  return problem::cat_placements;
}

// --- broadcast: extents as reshape has them ---------------------------------------------------------------------------

// A view: strides are 0 along dims that are new or were 1, so nothing is copied and an element stands in many places.
constexpr outcome broadcast_to_shape(const op_attr& a, const spec& x) {
  const int rank = packed_rank(a);
  if (const problem wrong = packed_problem(a); wrong != problem::none) return fail(wrong, x, 0, -1, rank, max_rank);
  if (rank < x.rank) return fail(problem::expand_extents, x, 0, -1, rank, x.rank);
  outcome r{{}, scalar_like(x)};
  r.out.rank = static_cast<std::uint8_t>(rank);
  r.out.offset = x.offset;
  r.out.dyn_bound = x.dyn_bound;
  for (int d = 0; d < rank; ++d) {
    const int own = d - (rank - x.rank);
    const std::int64_t e = packed_bound(a, d);
    const unsigned sizes = packed_sizes(a, d);
    const bool same = own >= 0 && x.extent[own] == e && dyn_sizes(x, own) == sizes;
    if (!same && own >= 0 && (x.extent[own] != 1 || is_dyn(x, own)))
      return fail(problem::expand_extents, x, 0, own, e, x.extent[own]);
    if (!same && sizes != 0 && ((sizes & ~x.dyn_bound.sizes()) != 0 || e % product_of(x.dyn_bound, sizes) != 0))
      return fail(problem::dyn_dim_changed, x, 0, own);
    r.out.extent[d] = e;
    r.out.stride[d] = same ? x.stride[own] : 0;
    set_dyn(r.out, d, sizes);
  }
  drop_bounds(r.out);
  return r;
}

constexpr bool is_broadcast_dim(const spec& x, const spec& out, int d) {
  const int own = d - (out.rank - x.rank);
  return own < 0 || x.extent[own] != out.extent[d];
}

constexpr rule_rows broadcast_to_rows(const spec& x, const spec& out) {
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  t.push_back(rows::all(rows::U, rows::U));
  for (int d = 0; d < out.rank; ++d)
    if (!is_broadcast_dim(x, out, d)) t.push_back(rows::all(rows::S(d - (out.rank - x.rank)), rows::S(d)));
  t.push_back(rows::all(rows::P, rows::P));
  return t;
}

}  // namespace shardwise::inline v0_1::rules
