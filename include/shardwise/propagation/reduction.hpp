// SPDX-License-Identifier: Apache-2.0
// Rules of sums and of the row operations: softmax, norms, log-sum-exp, cross entropy, embedding, and their adjoints.
#pragma once

#include <shardwise/propagation/rule.hpp>
#include <shardwise/propagation/transition.hpp>

namespace shardwise::inline v0_1::rules {

constexpr bool in_mask(std::int64_t mask, int d) { return (mask >> d) & 1; }

// The dim of sum's result that dim `d` of its operand becomes, or -1 if it is summed away.
constexpr int sum_dim(const op_attr& a, int d) {
  const auto of = attributes_of<sum_attributes>(a);
  if (in_mask(of.dims, d) && !in_mask(of.kept, d)) return -1;
  int k = 0;
  for (int i = 0; i < d; ++i) k += in_mask(of.dims, i) && !in_mask(of.kept, i) ? 0 : 1;
  return k;
}

constexpr outcome sum_shape(const op_attr& a, const spec& x) {
  const auto of = attributes_of<sum_attributes>(a);
  if ((of.dims >> x.rank) != 0) return fail(problem::dim_out_of_range, x, 0, -1, of.dims, x.rank);
  outcome r{{}, scalar_like(x)};
  int k = 0;
  for (int d = 0; d < x.rank; ++d) {
    if (!in_mask(of.dims, d)) copy_extent(r.out, k++, x, d);
    else if (in_mask(of.kept, d)) r.out.extent[k++] = 1;
  }
  r.out.rank = static_cast<std::uint8_t>(k);
  make_contiguous(r.out);
  return r;
}

constexpr rule_rows sum_rows(const op_attr& a, const spec& x) {
  const std::int64_t dims = attributes_of<sum_attributes>(a).dims;
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  t.push_back(rows::all(rows::U, rows::U));
  for (int d = 0; d < x.rank; ++d) t.push_back(rows::all(rows::S(d), in_mask(dims, d) ? rows::P : rows::S(sum_dim(a, d))));
  t.push_back(rows::all(rows::P, rows::P));
  return t;
}

constexpr outcome vector_norm_shape(const op_attr& a, const spec& x) {
  const auto order = attributes_of<vector_norm_attributes>(a).order;
  if (order < 1 || order > max_order) return fail(problem::norm_order, x, 0, -1, order, 1);
  return sum_shape(a, x);
}

// As a sum's, but that norms of parts are not norms of the whole in parts: they are partial norms, and nothing partial may
// come in.
constexpr rule_rows vector_norm_rows(const op_attr& a, const spec& x) {
  const auto order = attributes_of<vector_norm_attributes>(a).order;
  rule_rows t = sum_rows(a, x);
  --t.count;  // the partial row, which stands last
  for (int r = 0; r < t.count; ++r)
    if (t.item[r].out.is_partial()) t.item[r].out = partial_norm_value(static_cast<int>(order));
  return t;
}
constexpr rule_rows vector_norm_dx_rows(const op_attr& a, const spec& x) {
  const std::int64_t dims = attributes_of<vector_norm_attributes>(a).dims;
  using namespace rows;
  rule_rows t;
  t.push_back(all(R, R));
  t.push_back(all(U, U));
  for (int d = 0; d < x.rank; ++d)
    if (!in_mask(dims, d)) t.push_back({{S(sum_dim(a, d)), S(d), S(sum_dim(a, d))}, S(d)});
  t.push_back({{P, U, U}, P});
  return t;
}

// Rows of an operation that works along the last dim: every other dim may be sharded, in all row operands alike.
// `weights` trailing operands belong to the last dim and must be reduced where rows are sharded.
constexpr rule_rows row_rows(int rank, int operands, int weights, bool linear_in_first) {
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  t.push_back(rows::all(rows::U, rows::U));
  for (int d = 0; d + 1 < rank; ++d) {
    rule_row r = rows::all(rows::S(d), rows::S(d));
    for (int k = operands - weights; k < operands; ++k) r.in[k] = rows::U;
    t.push_back(r);
  }
  if (linear_in_first) {
    rule_row r = rows::all(rows::U, rows::P);
    r.in[0] = rows::P;
    t.push_back(r);
  }
  return t;
}

// Index operands read replicate for reduced, and have no share of a sum.
constexpr void indices_replicate(rule_rows& t, const spec* in, int n) {
  for (int r = 0; r < t.count; ++r)
    for (int k = 0; k < n; ++k)
      if (!is_floating(in[k].type) && (t.item[r].in[k].is_reduced() || t.item[r].in[k].is_partial()))
        t.item[r].in[k] = rows::R;
}

constexpr rule_rows norm_dw_rows(int rank) {
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  for (int d = 0; d + 1 < rank; ++d) t.push_back(rows::all(rows::S(d), rows::P));
  rule_row r = rows::all(rows::U, rows::P);
  r.in[0] = rows::P;
  t.push_back(r);
  return t;
}

// A table sharded by rows gives shares of the result: each rank has the rows that it owns and zeros for the others, so
// that the sum has one summand that is not zero. No mask has to be kept: the rows that a rank owns are its block.
constexpr rule_rows embedding_rows(const spec& index) {
  using namespace rows;
  rule_rows t;
  t.push_back({{R, R}, R});
  t.push_back({{U, R}, U});
  for (int d = 0; d < index.rank; ++d) t.push_back({{U, S(d)}, S(d)});
  t.push_back({{S(1), R}, S(index.rank)});
  t.push_back({{S(0), R}, P});
  return t;
}

constexpr rule_rows embedding_dw_rows(const spec& index) {
  using namespace rows;
  rule_rows t;
  t.push_back({{R, R}, R});
  t.push_back({{P, R}, P});
  for (int d = 0; d < index.rank; ++d) t.push_back({{S(d), S(d)}, P});
  t.push_back({{S(index.rank), R}, S(1)});
  t.push_back({{U, R}, S(0)});
  return t;
}

// How the rows of the adjoint's result are split on an axis: as the table's are, which no operand tells.
constexpr placement embedding_dw_split(const op_attr& a, int axis, placement out) {
  const std::int64_t cut = attributes_of<embedding_dw_attributes>(a).cut[axis];
  return out.is_shard(0) && cut != 0 ? unpack_placement(cut) : out;
}
constexpr op_attr embedding_dw_attr(const spec& table) {
  embedding_dw_attributes a{.rows = table.extent[0], .cut = {}};
  for (int axis = 0; axis < table.axes; ++axis)
    if (table.place[axis].is_shard(0)) a.cut[axis] = pack(table.place[axis]);
  return pack_attributes(a);
}

}  // namespace shardwise::inline v0_1::rules
