// SPDX-License-Identifier: Apache-2.0
// A rule is a table of single-mesh-axis rows; n axes are n independent look-ups. Matching, and the outcome of a rule.
#pragma once

#include <shardwise/propagation/op.hpp>
#include <shardwise/support/static_vector.hpp>
#include <shardwise/vocabulary/spec.hpp>

namespace shardwise {

// The shape of an operation's result (placements filled in later), or why there is none.
struct outcome {
  finding error;
  spec out;
};

constexpr outcome fail(problem p, const spec& fallback, int operand = -1, int dim = -1, long long have = 0,
                       long long want = 0, int axis = -1) {
  return {{p, operand, dim, axis, have, want}, fallback};
}

// One row: where the operands must be on one mesh axis, and where the result then is.
struct rule_row {
  placement in[max_inputs];
  placement out;
};

using rule_rows = static_vector<rule_row, 24>;

namespace rows {
inline constexpr placement R = replicate_value();
inline constexpr placement U = reduced_value();
inline constexpr placement P = partial_value();
constexpr placement S(int d) { return shard_value(d); }

constexpr rule_row all(placement p, placement out) {
  rule_row r{};
  for (auto& i : r.in) i = p;
  r.out = out;
  return r;
}
}  // namespace rows

struct row_match {
  bool found = false;
  bool split_differs = false;  // a row fits but for the boundaries of the splits
  placement out;
};

// The placement of operand `k` on an axis as rows speak of it: indices have no gradient, so reduced reads as replicate.
constexpr placement as_row_entry(const spec& s, int axis) {
  placement p = s.place[axis];
  if (!is_floating(s.type) && p.is_reduced()) p = replicate_value();
  return p;
}

// First row that fits on `axis`. Shards of one row must have the same block, which the result inherits.
constexpr row_match match(const rule_rows& table, const spec* in, int n, int axis) {
  row_match m;
  placement have[max_inputs]{};
  for (int k = 0; k < n; ++k) have[k] = as_row_entry(in[k], axis);
  for (int r = 0; r < table.count; ++r) {
    const rule_row& row = table.item[r];
    bool fits = true, same_split = true;
    std::int32_t block = 0;
    for (int k = 0; k < n && fits; ++k) {
      const placement& h = have[k];
      const placement& w = row.in[k];
      fits = h.kind == w.kind && (!w.is_shard() || h.dim == w.dim) && (!w.is_partial() || h.op == w.op);
      if (fits && w.is_shard()) {
        if (block == 0) block = h.block;
        same_split = same_split && block == h.block;
      }
    }
    if (!fits) continue;
    if (!same_split) {
      m.split_differs = true;
      continue;
    }
    m.found = true;
    m.out = row.out;
    if (m.out.is_shard() && block > 0) m.out.block = block;
    return m;
  }
  return m;
}

}  // namespace shardwise
