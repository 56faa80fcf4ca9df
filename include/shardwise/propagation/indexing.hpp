// SPDX-License-Identifier: Apache-2.0
// Rules of operations that read or write elements by index along one dim, and of their adjoints.
#pragma once

#include <shardwise/propagation/reduction.hpp>

namespace shardwise::inline v0_1::rules {

// Extents of `like` but along `dim`.
constexpr bool same_beside(const spec& x, const spec& like, int dim) {
  if (x.rank != like.rank) return false;
  for (int d = 0; d < x.rank; ++d)
    if (d != dim && !same_extent(x, d, like, d)) return false;
  return true;
}

// The dim of every operation by index.
constexpr int indexed_dim(const op_attr& a) { return static_cast<int>(attributes_of<index_attributes>(a).dim); }

// gather: x and index to x's elements, in the index's extents. scatter_add: the other way, summed into `extent` places along
// the dim. scatter_dsrc: as gather. All operands but one have equal extents, that one differs along the dim.
constexpr outcome gather_shape(op_code op, const op_attr& a, const spec* in, int n) {
  const auto at = attributes_of<index_attributes>(a);
  const spec &x = in[0], &index = in[1];
  const int dim = static_cast<int>(at.dim);
  if (dim < 0 || dim >= x.rank) return fail(problem::dim_out_of_range, x, 0, dim, dim, x.rank);
  if (is_dyn(x, dim) || (index.rank == x.rank && is_dyn(index, dim))) return fail(problem::dyn_dim_changed, x, 0, dim);
  if (!same_beside(index, x, dim)) return fail(problem::index_shape, x, 1, -1, index.rank, x.rank);
  const bool one_for_one = op == op_code::scatter_add;
  if (one_for_one && index.extent[dim] != x.extent[dim])
    return fail(problem::index_shape, x, 1, dim, index.extent[dim], x.extent[dim]);
  if (n > 2 && (!same_beside(in[2], x, dim) || in[2].extent[dim] != index.extent[dim]))
    return fail(problem::index_shape, x, 2, dim, in[2].extent[dim < in[2].rank ? dim : 0], index.extent[dim]);
  outcome r{{}, contiguous(x)};
  if (op == op_code::scatter_add) r.out.extent[dim] = at.extent;
  else if (op != op_code::scatter) r.out.extent[dim] = index.extent[dim];
  make_contiguous(r.out);
  return r;
}

constexpr outcome index_select_shape(op_code op, const op_attr& a, const spec* in) {
  const auto at = attributes_of<index_attributes>(a);
  const spec &x = in[0], &index = in[1];
  const int dim = static_cast<int>(at.dim);
  if (dim < 0 || dim >= x.rank) return fail(problem::dim_out_of_range, x, 0, dim, dim, x.rank);
  if (index.rank != 1) return fail(problem::index_rank, x, 1, -1, index.rank, 1);
  if (is_dyn(x, dim) || is_dyn(index, 0)) return fail(problem::dyn_dim_changed, x, 0, dim);
  const bool add = op == op_code::index_add;
  if (add && index.extent[0] != x.extent[dim]) return fail(problem::index_shape, x, 1, dim, index.extent[0], x.extent[dim]);
  outcome r{{}, contiguous(x)};
  r.out.extent[dim] = add ? at.extent : index.extent[0];
  make_contiguous(r.out);
  return r;
}

// Where the index is sharded along the dim, as its own dim `along`, every rank reads all of x, whose cotangent is then
// summed; the adjoint's rows are these with the duals of operand and result exchanged. An index of the operand's rank is
// sharded as that is beside the dim, one of rank 1 is whole there.
constexpr rule_rows read_by_index_rows(const op_attr& a, const spec& x, bool beside, int along) {
  using namespace rows;
  const int dim = indexed_dim(a);
  rule_rows t;
  t.push_back({{R, R}, R});
  t.push_back({{U, R}, U});
  t.push_back({{P, R}, P});
  for (int d = 0; d < x.rank; ++d)
    if (d != dim) t.push_back({{S(d), beside ? S(d) : R}, S(d)});
  t.push_back({{U, S(along)}, S(dim)});
  return t;
}
constexpr rule_rows gather_rows(const op_attr& a, const spec& x) { return read_by_index_rows(a, x, true, indexed_dim(a)); }
constexpr rule_rows scatter_add_rows(const op_attr& a, const spec& x) {
  rule_rows t = gather_rows(a, x);
  const int dim = indexed_dim(a);
  t.item[t.count - 1] = {{rows::S(dim), rows::S(dim)}, rows::P};
  return t;
}

constexpr rule_rows index_select_rows(const op_attr& a, const spec& x) { return read_by_index_rows(a, x, false, 0); }
constexpr rule_rows index_add_rows(const op_attr& a, const spec& x) {
  rule_rows t = index_select_rows(a, x);
  t.item[t.count - 1] = {{rows::S(indexed_dim(a)), rows::S(0)}, rows::P};
  return t;
}

// Of a scatter: whether it writes a tensor, or zeros.
constexpr bool writes_no_number(const op_attr& a, int n) { return n > 2 || attributes_of<scatter_attributes>(a).zeros != 0; }
// Linear then in what is written into and what is written, together. A number other than zero would be written once a rank.
constexpr rule_rows scatter_rows(const op_attr& a, const spec& x, int n) {
  using namespace rows;
  rule_rows t;
  t.push_back({{R, R, R}, R});
  t.push_back({{U, R, U}, U});
  for (int d = 0; d < x.rank; ++d)
    if (d != indexed_dim(a)) t.push_back({{S(d), S(d), S(d)}, S(d)});
  if (writes_no_number(a, n)) t.push_back({{P, R, P}, P});
  return t;
}

constexpr problem indexing_problem(op_code op, const op_attr& a, const spec* in, int n, int axis) {
  const int dim = indexed_dim(a);
  if (in[0].place[axis].is_shard(dim)) return problem::index_dim_sharded;
  if (op == op_code::scatter && (in[1].place[axis].is_shard(dim) || (n > 2 && in[2].place[axis].is_shard(dim))))
    return problem::index_dim_sharded;
  return problem::index_placements;
}

// --- one_hot ------------------------------------------------------------------

constexpr outcome one_hot_shape(const op_attr& a, const spec& index) {
  const auto of = attributes_of<one_hot_attributes>(a);
  if (index.rank + 1 > max_rank) return fail(problem::rank_too_large, index, 0, -1, index.rank + 1, max_rank);
  outcome r{{}, scalar_like(index)};
  for (int d = 0; d < index.rank; ++d) copy_extent(r.out, d, index, d);
  r.out.extent[index.rank] = of.classes;
  r.out.rank = static_cast<std::uint8_t>(index.rank + 1);
  r.out.type = static_cast<dtype>(of.type);
  make_contiguous(r.out);
  return r;
}

constexpr rule_rows one_hot_rows(const spec& index) {
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  for (int d = 0; d < index.rank; ++d) t.push_back(rows::all(rows::S(d), rows::S(d)));
  return t;
}

}  // namespace shardwise::inline v0_1::rules
