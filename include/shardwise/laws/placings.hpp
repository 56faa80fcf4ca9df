// SPDX-License-Identifier: Apache-2.0
// Which placements a program is proved under: all that its last rule admits on one axis, and pairs of them on two.
#pragma once

#include <shardwise/laws/proof.hpp>

namespace shardwise::inline v0_1::laws {

using placings = static_vector<placing, 40>;

constexpr bool is_placement_function(op_code op) {
  return op == op_code::permute || op == op_code::reshape || op == op_code::slice || op == op_code::pad ||
         op == op_code::slice_scatter || op == op_code::redistribute || op == op_code::wait || op == op_code::detach;
}

// Specs of all nodes with the leaves placed on one axis; false where a placement or a step is refused.
constexpr bool place(const program& p, const placing& at, const ranks_of& mesh, spec* s) {
  for (int k = 0; k < p.leaf_count; ++k) {
    s[k] = leaf_spec(p.leaves[k], mesh);
    for (int a = 0; a < mesh.axes; ++a) s[k].place[a] = at.at[k][a];
    if (check_placements(s[k])) return false;
    normalise(s[k]);
  }
  for (int j = 0; j < p.step_count; ++j) {
    spec in[max_inputs]{};
    for (int k = 0; k < p.steps[j].inputs; ++k) in[k] = s[p.steps[j].in[k]];
    const outcome o = infer(p.steps[j].record(), p.steps[j].a, in, p.steps[j].inputs);
    if (o.error) return false;
    s[p.leaf_count + j] = o.out;
    for (int k = 1; k < p.steps[j].record().results; ++k)
      if (infer(p.steps[j].record(), p.steps[j].a, in, p.steps[j].inputs, k).error) return false;
  }
  return true;
}

constexpr bool admits(const program& p, const placing& at, const ranks_of& mesh) {
  spec s[max_leaves + 4]{};
  return place(p, at, mesh, s);
}

// All that the last step's rule admits on one axis: its rows with and without a block, or, where the rule is a function
// of one operand or wants all alike, every placement that it accepts. A row that nothing reaches comes back all the same, and fails.
constexpr placings placings_of(const program& p, int ranks) {
  placings all;
  ranks_of mesh;
  mesh.size[0] = ranks;
  spec s[max_leaves + 4]{};
  place(p, placing{}, mesh, s);
  const step& last = p.last();
  bool rows = !is_placement_function(last.op);
  for (int k = 0; k < last.inputs; ++k) rows = rows && last.in[k] < p.leaf_count + p.step_count - 1;
  bool covered[max_leaves]{};
  for (int k = 0; k < last.inputs; ++k)
    if (last.in[k] < p.leaf_count) covered[last.in[k]] = true;
  for (int k = 0; k < p.leaf_count; ++k) rows = rows && covered[k];

  if (!rows) {  // one leaf, or several that are placed alike
    for (int d = -3; d < s[0].rank; ++d)
      for (int blocked = 0; blocked < (d >= 0 && p.block > 1 ? 2 : 1); ++blocked) {
        placing at;
        at.at[0][0] = d == -3   ? replicate_value()
                      : d == -2 ? reduced_value()
                      : d == -1 ? partial_value()
                                : shard_value(d, blocked ? p.block : 1);
        for (int k = 1; k < p.leaf_count; ++k) at.at[k][0] = at.at[0][0];
        spec t[max_leaves + 4]{};
        if (place(p, at, mesh, t) && !(blocked && t[0].place[0].block == 1)) all.push_back(at);
      }
    return all;
  }

  spec in[max_inputs]{};
  for (int k = 0; k < last.inputs; ++k) in[k] = s[last.in[k]];
  const spec out = rules::infer_shape(last.record(), last.a, in, last.inputs).out;
  const int results = p.results() < most_results ? p.results() : most_results;  // more are refused by the proof
  rule_rows tables[most_results];
  for (int k = 0; k < results; ++k) tables[k] = rules::infer_rows(last.record(), last.a, in, last.inputs, out, k);
  const rule_rows& table = tables[0];
  for (int r = 0; r < table.count; ++r)
    for (int variant = 0; variant < 3; ++variant) {  // plain, with a block, with indices that are reduced
      const rule_row& row = table.item[r];
      if (variant == 1 && p.block == 1) continue;
      placing at;
      at.promises = true;
      for (int k = 0; k < results; ++k) at.out[k] = tables[k].item[r].out;
      bool differs = variant == 0, valid = true;
      for (int k = 0; k < last.inputs; ++k) {
        if (last.in[k] >= p.leaf_count) continue;
        placement q = row.in[k];
        if (variant == 1 && q.is_shard()) {
          q.block = p.block;
          spec split = in[k];
          split.place[0] = q;
          valid = valid && !check_placements(split);
          normalise(split);
          differs = differs || split.place[0].block != 1;
          for (int j = 0; j < results; ++j)
            if (at.out[j].is_shard()) at.out[j].block = p.block;
        }
        if (variant == 2 && in[k].type == dtype::i32 && q.is_replicate()) {
          q = reduced_value();
          differs = true;
        }
        for (int i = 0; i < k; ++i) valid = valid && (last.in[i] != last.in[k] || at.at[last.in[k]][0] == q);
        at.at[last.in[k]][0] = q;
      }
      spec t[max_leaves + 4]{};
      if (p.partly) valid = valid && place(p, at, mesh, t);
      if (differs && valid) all.push_back(at);
    }
  return all;
}

// The combination of a placement on the first axis and one on the second.
constexpr placing both_axes(const placing& first, const placing& second) {
  placing r = first;
  r.promises = false;
  for (int k = 0; k < max_leaves; ++k) r.at[k][1] = second.at[k][0];
  return r;
}

}  // namespace shardwise::inline v0_1::laws
