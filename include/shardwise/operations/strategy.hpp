// SPDX-License-Identifier: Apache-2.0
// Strategies of implicit mode: the cheapest way, by DTensor's costs, to place an operation's operands so that its rule
// admits them.
#pragma once

#include <shardwise/operations/infer.hpp>
#include <shardwise/propagation/planner.hpp>

namespace shardwise::inline v0_1 {

// Where an operation's operands are to be; not found: no placement helps (their extents are wrong).
struct strategy {
  bool found = false;
  int operands = 0;
  double cost = 0;
  spec target[max_inputs]{};
};

namespace rules {

// DTensor's order of the rows of a contraction, which decides ties: whole, batch, contracting, lhs free, rhs free.
constexpr int einsum_order(const rule_row& row) {
  const bool l = row.in[0].is_shard(), r = row.in[1].is_shard();
  if (l && r) return row.out.is_shard() ? 1 : 2;
  return l ? 3 : r ? 4 : 0;
}

// The rows that may be chosen from, in the order in which ties are decided. A partial operand of a contraction is
// resolved, as in DTensor.
constexpr rule_rows candidate_rows(const operation& o, const op_attr& a, const spec* in, int n, const spec& out) {
  const rule_rows all = infer_rows(o, a, in, n, out);
  if (o.choice != operand_choice::contracted) return all;
  rule_rows r;
  for (int order = 0; order < 5; ++order)
    for (int k = 0; k < all.count; ++k)
      if (!all.item[k].in[0].is_partial() && !all.item[k].in[1].is_partial() && einsum_order(all.item[k]) == order)
        r.push_back(all.item[k]);
  return r;
}

constexpr void place_target(spec& target, int axis, placement want) {
  if (!is_floating(target.type) && (want.is_reduced() || want.is_partial())) want = replicate_value();
  target.place[axis] = want;
}

// Adds what it costs to have operand `k`, which is `have`, where it is wanted; where no plan leads there, nothing does.
constexpr void price(strategy& s, int k, const spec& have) {
  drop_misplaced_factors(s.target[k]);  // of a strided shard whose later axes go elsewhere
  s.found = s.found && !check_placements(s.target[k]);
  if (!s.found) return;
  normalise(s.target[k]);
  s.found = static_cast<bool>(plan_redistribution(have, s.target[k]));
  if (s.found) s.cost += redistribution_cost(have, s.target[k]);
}

// Elementwise: the operand that most axes shard is followed, the first of equals; a partial one stays partial only
// where the operation is linear in all its operands.
constexpr strategy follow_strategy(const operation& o, const op_attr& a, const spec* in, int n, const spec& out) {
  strategy s{true, n, 0, {}};
  int followed = 0, most = -1;
  for (int k = 0; k < n; ++k) {
    int shards = 0;
    for (int m = 0; m < in[k].axes; ++m) shards += in[k].place[m].is_shard() ? 1 : 0;
    if (shards > most || (shards == most && !is_floating(in[followed].type))) {  // a mask leads only if it must
      most = shards;
      followed = k;
    }
    s.target[k] = in[k];
  }
  const spec& lead = in[followed];
  for (int m = 0; m < lead.axes; ++m) {
    const placement p = lead.place[m];
    bool alike = true, shares = o.linear.value(a, n) == linearity::joint &&
                                p == rows::P;  // a shard has none; an extreme's are no summands
    for (int k = 0; k < n; ++k) {
      alike = alike && in[k].place[m] == p;
      shares = shares && (in[k].place[m] == p || in[k].place[m].is_whole());
    }
    if (alike && p.is_whole()) continue;
    for (int k = 0; k < n; ++k) {
      placement want = replicate_value();
      if (p.is_partial() && shares) want = p;
      if (p.is_shard()) {
        const int d = p.dim + out.rank - lead.rank;
        const int own = aligned_dim(in[k], out.rank, d, out.extent[d]);
        want = own < 0 ? reduced_value() : split_along(own, p);
        if (lead.extent[p.dim] != out.extent[d]) want = k == followed ? replicate_value() : in[k].place[m];  // broadcast
      }
      place_target(s.target[k], m, want);
    }
  }
  for (int k = 0; k < n; ++k) price(s, k, in[k]);
  s.found = s.found && !infer(o, a, s.target, n).error;
  return s;
}

// A view replicates the axes whose shards it would cut, a padding those that it cannot pad.
constexpr strategy view_strategy(const operation& o, const op_attr& a, const spec& x) {
  strategy s{false, 1, 0, {x}};
  for (int tries = 0; tries <= x.axes; ++tries) {
    const finding f = infer(o, a, s.target, 1).error;
    if (!f) {
      s.found = true;
      price(s, 0, x);
      return s;
    }
    if (f.axis < 0 || f.axis >= x.axes || s.target[0].place[f.axis].is_whole()) return s;
    s.target[0].place[f.axis] = replicate_value();
  }
  return s;
}

// DTensor's merge of two operands of a join on one axis, from left to right.
constexpr placement merged(placement a, placement b) {
  if (a == b) return a;
  if (a.is_shard() || b.is_shard()) return !b.is_shard() ? a : !a.is_shard() ? b : replicate_value();
  if (a.is_partial() && b.is_partial()) return replicate_value();
  const placement p = a.is_partial() ? a : b;
  return p.is_partial() && p.op != reduction::product ? p : replicate_value();  // whole values have no shares of a product
}

// Joins: all operands where the merge of all leads; the joined dim is gathered.
constexpr strategy merge_strategy(const operation& o, const op_attr& a, const spec* in, int n) {
  strategy s{true, n, 0, {}};
  for (int k = 0; k < n; ++k) s.target[k] = in[k];
  for (int m = 0; m < in[0].axes; ++m) {
    placement p = in[0].place[m];
    for (int k = 1; k < n; ++k) p = merged(p, in[k].place[m]);
    if (p.is_shard(rules::joined_dim(a))) p = replicate_value();
    for (int k = 0; k < n; ++k)
      place_target(s.target[k], m, p.is_shard() && in[k].place[m].is_shard(p.dim) ? in[k].place[m] : p);
  }
  for (int k = 0; k < n; ++k) price(s, k, in[k]);
  s.found = s.found && !infer(o, a, s.target, n).error;
  return s;
}

// What is written in place goes where the tensor is that it is written to.
constexpr strategy written_strategy(const op_attr& a, const spec* in) {
  strategy s{true, 2, 0, {in[0], in[1]}};
  for (int m = 0; m < in[0].axes; ++m) place_target(s.target[1], m, in[0].place[m]);
  price(s, 1, in[1]);
  s.found = s.found && !infer(op_code::copy_, a, s.target, 2).error;
  return s;
}

// Operations along rows keep what shards other dims; the last dim and partial sums are made whole, whatever is cheaper.
constexpr bool admits_first(const operation& o, const spec& x, int axis, const rule_row& row) {
  if (o.choice != operand_choice::along_rows) return true;
  const placement p = x.place[axis];
  return p.is_shard() && p.dim + 1 < x.rank ? row.in[0].is_shard(p.dim) : row.in[0].is_whole();
}

// Whether an operation's operands go to the cheapest of all combinations of rows over the mesh axes.
constexpr bool is_searched(const operation& o) {
  return o.choice == operand_choice::cheapest || o.choice == operand_choice::contracted ||
         o.choice == operand_choice::along_rows;
}

// How many combinations there are. A thousand of them are more than compilers evaluate in one constant: see strategy_of.
constexpr int combinations(const operation& o, const op_attr& a, const spec* in, int n) {
  const outcome shape = infer_shape(o, a, in, n);
  if (shape.error) return 0;
  const int rows = candidate_rows(o, a, in, n, shape.out).count;
  int all = 1;
  for (int m = 0; m < in[0].axes; ++m) all *= rows;
  return all;
}

// The first of the cheapest among combinations first .. first + count, the first axis slowest.
constexpr strategy cheapest_strategy(const operation& o, const op_attr& a, const spec* in, int n, const spec& out, int first,
                                     int count) {
  const rule_rows rows = candidate_rows(o, a, in, n, out);
  strategy best{false, n, 0, {}};
  int choice[max_axes]{};
  for (int m = in[0].axes - 1, rest = first; m >= 0; --m, rest /= rows.count) choice[m] = rest % rows.count;
  for (int done = 0; done < count; ++done) {
    strategy s{true, n, 0, {}};
    for (int m = 0; m < in[0].axes; ++m) s.found = s.found && admits_first(o, in[0], m, rows.item[choice[m]]);
    for (int k = 0; k < n && s.found && !(best.found && s.cost >= best.cost); ++k) {
      s.target[k] = in[k];
      for (int m = 0; m < in[k].axes; ++m) {
        const placement want = rows.item[choice[m]].in[k], own = in[k].place[m];
        place_target(s.target[k], m, want.is_shard() && own.is_shard(want.dim) ? own : want);
      }
      price(s, k, in[k]);
    }
    if (s.found && (!best.found || s.cost < best.cost) && !infer(o, a, s.target, n).error) best = s;
    int m = in[0].axes - 1;
    while (m >= 0 && ++choice[m] == rows.count) choice[m--] = 0;
    if (m < 0) break;
  }
  return best;
}

}  // namespace rules

// Where the operands of an operation go in implicit mode: nowhere, if its rule admits them as they are. Of combinations that
// are searched, `count` from `first` on.
constexpr strategy choose_strategy(const operation& o, const op_attr& a, const spec* in, int n, int first = 0,
                                   int count = 1 << 30) {
  if (!infer(o, a, in, n).error) {
    strategy s{true, n, 0, {}};
    for (int k = 0; k < n; ++k) s.target[k] = in[k];
    return s;
  }
  const operand_choice choice = o.choice;
  if (choice == operand_choice::none) return strategy{};
  if (choice == operand_choice::merged) return rules::merge_strategy(o, a, in, n);
  if (choice == operand_choice::written) return rules::written_strategy(a, in);
  if (choice == operand_choice::kept) return rules::view_strategy(o, a, in[0]);
  const outcome shape = rules::infer_shape(o, a, in, n);
  if (shape.error) return strategy{};
  if (choice == operand_choice::followed) return rules::follow_strategy(o, a, in, n, shape.out);
  return rules::cheapest_strategy(o, a, in, n, shape.out, first, count);
}
constexpr strategy choose_strategy(op_code op, const op_attr& a, const spec* in, int n) {
  return choose_strategy(operation_of(op), a, in, n);
}

}  // namespace shardwise::inline v0_1
