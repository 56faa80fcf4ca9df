// SPDX-License-Identifier: Apache-2.0
// Rules of paddings and of masks by position.
#pragma once

#include <shardwise/propagation/rule.hpp>

namespace shardwise::inline v0_1::rules {

// --- constant_pad -----------------------------------------------------------------------------------------------------

inline constexpr int padded_dims = 5;  // of one operation: neighbours, see graph/functions/fills.hpp

constexpr int first_padded(const op_attr& a) { return static_cast<int>(a.v[5] >> 1); }
// Elements before (low 32 bits) and after dim d.
constexpr std::int64_t pads_of(const op_attr& a, int d) {
  const int k = d - first_padded(a);
  return k >= 0 && k < padded_dims ? a.v[k] : 0;
}
constexpr std::int64_t pad_before(const op_attr& a, int d) { return pads_of(a, d) & 0xFFFFFFFF; }
constexpr std::int64_t pad_after(const op_attr& a, int d) { return pads_of(a, d) >> 32; }
constexpr bool pads_zeros(const op_attr& a) { return (a.v[5] & 1) != 0; }

constexpr outcome constant_pad_shape(const op_attr& a, const spec& x) {
  outcome r{{}, contiguous(x)};
  for (int d = 0; d < x.rank; ++d) {
    if (pads_of(a, d) == 0) continue;
    if (is_dyn(x, d)) return fail(problem::dyn_dim_changed, x, 0, d);
    r.out.extent[d] += pad_before(a, d) + pad_after(a, d);
  }
  make_contiguous(r.out);
  return r;
}

// A sum's shares may be padded with zeros; any other number would be summed too.
constexpr rule_rows constant_pad_rows(const op_attr& a, const spec& x) {
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  t.push_back(rows::all(rows::U, rows::U));
  for (int d = 0; d < x.rank; ++d)
    if (pads_of(a, d) == 0) t.push_back(rows::all(rows::S(d), rows::S(d)));
  if (pads_zeros(a)) t.push_back(rows::all(rows::P, rows::P));
  return t;
}

constexpr problem constant_pad_problem(const spec& x, int axis) {
  return x.place[axis].is_shard() ? problem::pad_dim_sharded : problem::partial_nonlinear;
}

// --- elementwise with one operand of the result's extents ---------------------------------------------------------------

constexpr rule_rows elementwise_rows(const spec& x, bool linear) {
  rule_rows t;
  t.push_back(rows::all(rows::R, rows::R));
  t.push_back(rows::all(rows::U, rows::U));
  for (int d = 0; d < x.rank; ++d) t.push_back(rows::all(rows::S(d), rows::S(d)));
  if (linear) t.push_back(rows::all(rows::P, rows::P));
  return t;
}

}  // namespace shardwise::inline v0_1::rules
