// SPDX-License-Identifier: Apache-2.0
// Redistribution plans: from one list of placements to another by steps of one mesh axis each, with bytes and cost.
#pragma once

#include <shardwise/propagation/cost.hpp>

namespace shardwise::inline v0_1 {

// Both orders gather nested shards of a dim from the axis that splits it last to the first and split again the other way
// round, so no step meets a dim that another axis splits further.
//   late      an axis goes straight to its target; only where the target is a shard of a dim that the axes before it
//             are yet to split otherwise is it made whole first. An axis of one rank moves nothing.
//   seed_era  PyTorch of mid-2024. On several axes a shard reaches a shard through replicate, even where it keeps its
//             dim; replicate becomes partial<sum> by dividing: every rank holds the value over the axis' size; and there
//             is no strided shard.
// What else differs from PyTorch, policy or not, is listed in propagation/pytorch.hpp.
enum class redistribution_policy : std::uint8_t { late = 0, seed_era = 1 };

// Why there is no plan; the cost is then infinite.
enum class redistribution_obstacle : std::uint8_t {
  none,
  tensors_differ,      // other extents or element type
  meshes_differ,       // other axes or device kind
  bad_placement,       // a shard of a dim that the tensor lacks, or a block that does not divide it
  shard_to_partial,    // priced infinite, so never chosen; redistribute of one axis has it, for adjoints
  partial_op_changes,  // a sum is not a maximum
  whole_to_partial,    // partial of product and norms (seed_era: of anything but sum): no local value has this meaning
  mixed_partials,      // a partial axis changes beside one of another reduction: the order of the steps would count
  no_strided_shards,   // seed_era: one is given or wanted
};

// --- padding ---------------------------------------------------------------------------------------------------------

// Extents of one rank's buffers where a collective takes equal parts only, as PyTorch's do: every shard is padded at
// its tail to the first one's size. What is `received` beyond the own block is cut off again, as a view. This library's
// collectives send exact parts; a backend without those pads like this.
struct padded_exchange {
  std::int64_t sent[max_rank]{};
  std::int64_t received[max_rank]{};
};

// Of the step from `from` to `to`, which differ on `axis` alone, at coordinate `c`.
constexpr padded_exchange padded_extents(const spec& from, const spec& to, int axis, const int* c, const run_sizes& n = {}) {
  padded_exchange x;
  for (int d = 0; d < from.rank; ++d) {
    x.sent[d] = local_interval(from, d, c, n).size;
    x.received[d] = local_interval(to, d, c, n).size;
  }
  const placement p = from.place[axis], q = to.place[axis];
  const int ranks = from.axis_size[axis];
  if (!communicates(transition_of(p, q, ranks)) || (p.is_shard() && q.is_shard(p.dim))) return x;
  if (p.is_shard()) {
    x.sent[p.dim] = chunk_size(x.received[p.dim], p.block, ranks);
    x.received[p.dim] = x.sent[p.dim] * ranks;
  }
  if (q.is_shard()) {
    x.received[q.dim] = chunk_size(x.sent[q.dim], q.block, ranks);
    x.sent[q.dim] = x.received[q.dim] * ranks;
  }
  return x;
}

// --- plans -----------------------------------------------------------------------------------------------------------

struct redistribution_step {
  int axis = 0;
  placement from;
  placement to;
  transition kind = transition::none;  // to_partial and divisor 1: coordinate 0 keeps the value, the others hold zeros
  std::int32_t divisor = 1;            // to_partial in seed_era: every rank holds the value over this
  std::int64_t bytes = 0;              // payload that the busiest rank sends
  std::int64_t padded_bytes = 0;       // what a rank would send if parts were padded to equal size
  spec after;                          // the tensor once the step is done
};

// A dyn dim counts at its bound in `bytes`, `padded_bytes` and `cost`.
struct redistribution_plan {
  redistribution_obstacle obstacle = redistribution_obstacle::none;
  int axis = -1;  // where the obstacle is; -1 where it is not one axis' own
  double cost = 0;
  spec from;
  static_vector<redistribution_step, 2 * max_axes> steps;

  constexpr explicit operator bool() const { return obstacle == redistribution_obstacle::none; }
  constexpr const spec& before(int step) const { return step == 0 ? from : steps[step - 1].after; }
  constexpr const spec& result() const { return before(steps.size()); }
};

// Payload that the rank at coordinate `c` sends in one step, at the sizes n of a run.
constexpr std::int64_t bytes_sent(const redistribution_plan& p, int step, const int* c, const run_sizes& n = {}) {
  return bytes_sent(p.before(step), p.steps[step].after, p.steps[step].axis, c, n);
}
constexpr std::int64_t bytes_sent(const redistribution_plan& p, const int* c, const run_sizes& n = {}) {
  std::int64_t total = 0;
  for (int k = 0; k < p.steps.size(); ++k) total += bytes_sent(p, k, c, n);
  return total;
}

namespace detail {

constexpr bool same_tensor(const spec& a, const spec& b) {
  bool same = a.rank == b.rank && a.type == b.type && a.dyn == b.dyn && a.dyn_bound == b.dyn_bound;
  for (int d = 0; d < max_rank; ++d) same = same && a.extent[d] == b.extent[d];
  return same;
}

// The largest payload of a rank. First parts are largest, so other axes stand at 0, save those that split the exchanged
// dims with this one: a longer dim may leave less for a later part.
constexpr std::int64_t busiest(const spec& from, const spec& to, int axis) {
  const placement p = from.place[axis], q = to.place[axis];
  if (!communicates(transition_of(p, q, from.axis_size[axis]))) return 0;
  std::int64_t most = 0;
  int c[max_axes]{};
  for (;;) {
    const std::int64_t sent = bytes_sent(from, to, axis, c);
    most = sent > most ? sent : most;
    int a = from.axes - 1;
    for (; a >= 0; --a) {
      const placement outer = from.place[a];
      const bool searched = a == axis || (p.is_shard() && q.is_shard() && (outer.is_shard(p.dim) || outer.is_shard(q.dim)));
      if (searched && ++c[a] < from.axis_size[a]) break;
      c[a] = 0;
    }
    if (a < 0) return most;
  }
}

constexpr std::int64_t padded_bytes(const spec& from, const spec& to, int axis) {
  const int ranks = from.axis_size[axis];
  const placement p = from.place[axis], q = to.place[axis];
  const transition t = transition_of(p, q, ranks);
  if (t == transition::all_reduce || (p.is_shard() && q.is_shard(p.dim))) return busiest(from, to, axis);
  if (!communicates(t)) return 0;
  constexpr int origin[max_axes]{};
  const padded_exchange x = padded_extents(from, to, axis, origin);
  std::int64_t n = static_cast<std::int64_t>(size_of(from.type)) * (ranks - 1);
  for (int d = 0; d < from.rank; ++d) n *= x.sent[d];
  return t == transition::all_gather ? n : n / ranks;
}

struct axis_sequence {
  int axis[max_axes]{};
};

// The axes in an order in which each dim's are in theirs: the mesh's, save that a strided shard waits for those that it
// comes after.
constexpr axis_sequence splitting_order(const spec& s) {
  axis_sequence r;
  bool listed[max_axes]{};
  for (int k = 0; k < s.axes;) {
    for (int a = 0; a < s.axes; ++a) {
      bool ready = !listed[a];
      if (ready && s.place[a].is_shard()) {
        const split_order o = split_order_of(s, s.place[a].dim);
        for (int i = 0; i < o.position(a); ++i) ready = ready && listed[o.axis[i]];
      }
      if (!ready) continue;
      listed[a] = true;
      r.axis[k++] = a;
      break;
    }
  }
  return r;
}

struct redistribution_planner {
  redistribution_plan plan;
  redistribution_policy policy;

  constexpr void move(int axis, placement to) {
    const spec& at = plan.result();
    redistribution_step s;
    s.axis = axis;
    s.from = at.place[axis];
    s.to = to;
    if (s.from == to) return;
    const int ranks = at.axis_size[axis];
    s.kind = transition_of(s.from, to, ranks);
    if (s.kind == transition::to_partial && policy == redistribution_policy::seed_era) s.divisor = ranks;
    s.after = at;
    s.after.place[axis] = to;
    if (s.kind != transition::none) make_contiguous(s.after);
    s.bytes = busiest(at, s.after, axis);
    s.padded_bytes = padded_bytes(at, s.after, axis);
    plan.steps.push_back(s);
  }

  // Whether `axis` is where it is to be: its target, in a dim that the same axes split before it.
  constexpr bool settled(const spec& to, int axis) const {
    const spec& at = plan.result();
    if (at.place[axis] != to.place[axis] || !at.place[axis].is_shard()) return at.place[axis] == to.place[axis];
    const int d = at.place[axis].dim;
    const split_order now = split_order_of(at, d), then = split_order_of(to, d);
    const int mine = now.position(axis), wanted = then.position(axis);
    for (int a = 0; a < to.axes; ++a) {
      const bool before = now.position(a) < mine, precedes = then.position(a) < wanted;
      if (at.axis_size[a] > 1 && (before != precedes || (before && at.place[a] != to.place[a]))) return false;
    }
    return true;
  }

  // Whether `axis` may split dim `d` next: the axes that are to split it before do so already, and no others do.
  constexpr bool may_split(const spec& to, int axis, int d) const {
    const spec& at = plan.result();
    const split_order then = split_order_of(to, d);
    const int wanted = then.position(axis);
    for (int a = 0; a < to.axes; ++a) {
      if (a == axis || at.axis_size[a] == 1) continue;
      if (then.position(a) < wanted ? at.place[a] != to.place[a] : at.place[a].is_shard(d)) return false;
    }
    return true;
  }

  constexpr void late(const spec& to) {
    bool sharded = false;
    for (int a = 0; a < to.axes; ++a) sharded = sharded || plan.from.place[a].is_shard();
    const axis_sequence back = splitting_order(plan.from), forth = splitting_order(to);
    for (int k = to.axes - 1; k >= 0 && sharded; --k) {
      const int a = back.axis[k];
      const placement p = to.place[a];
      if (settled(to, a)) continue;
      const bool direct = !p.is_shard() || may_split(to, a, p.dim);
      if (direct || !plan.result().place[a].is_whole()) move(a, direct ? p : replicate_value());
    }
    for (int k = 0; k < to.axes; ++k) move(forth.axis[k], to.place[forth.axis[k]]);
  }

  // One move for each axis, two where a shard reaches a shard; sorted by key, equal keys in axis order.
  constexpr void seed_era(const spec& to) {
    struct keyed {
      int axis = 0;
      placement to;
      int key = 0;
    };
    static_vector<keyed, 2 * max_axes> moves;
    for (int a = 0; a < to.axes; ++a) {
      const placement p = plan.from.place[a], q = to.place[a];
      const bool through = p.is_shard() && q.is_shard() && to.axes > 1;
      if (through) moves.push_back({a, replicate_value(), -a});
      moves.push_back({a, q, q.is_shard() ? (p.is_shard() && !through ? 0 : a) : p.is_shard() ? -a : 0});
    }
    for (int key = -max_axes; key <= max_axes; ++key)
      for (const keyed& m : moves)
        if (m.key == key) move(m.axis, m.to);
  }
};

constexpr redistribution_obstacle obstacle_between(placement from, placement to, int ranks, redistribution_policy policy) {
  using enum redistribution_obstacle;
  if (from == to || !to.is_partial() || (ranks == 1 && policy == redistribution_policy::late)) return none;
  if (from.is_shard()) return shard_to_partial;
  if (from.is_partial()) return partial_op_changes;
  const bool late = policy == redistribution_policy::late;
  const bool any = to.op == reduction::sum || (to.op != reduction::product && !to.is_norm() && late);
  return any ? none : whole_to_partial;
}

// Whether it is the same to reduce over one axis first or over the other: sums and means commute, as equal ones do.
constexpr bool commute(placement p, placement q) {
  const auto kind = [](placement r) { return r.op == reduction::avg ? reduction::sum : r.op; };
  return kind(p) == kind(q) && p.more == q.more;
}

// A step in between may have partials of both lists.
constexpr bool mixes_partials(const spec& from, const spec& to) {
  placement first{};
  for (const spec* s : {&from, &to})
    for (int a = 0; a < s->axes; ++a) {
      if (!s->place[a].is_partial() || s->axis_size[a] == 1) continue;
      if (!first.is_partial()) first = s->place[a];
      if (!commute(first, s->place[a])) return true;
    }
  return false;
}

constexpr void find_obstacle(redistribution_plan& p, const spec& from, const spec& to, redistribution_policy policy) {
  using enum redistribution_obstacle;
  const finding wrong = check_placements(from) ? check_placements(from) : check_placements(to);
  p.obstacle = !same_mesh(from, to) ? meshes_differ : !same_tensor(from, to) ? tensors_differ : wrong ? bad_placement : none;
  if (p.obstacle == bad_placement) p.axis = wrong.axis;
  bool moves_partial = false;
  for (int a = 0; a < from.axes && p; ++a) {
    const placement f = from.place[a], t = to.place[a];
    p.obstacle = obstacle_between(f, t, from.axis_size[a], policy);
    if (!p) p.axis = a;
    moves_partial = moves_partial || (f != t && (f.is_partial() || t.is_partial()) && from.axis_size[a] > 1);
  }
  if (p && moves_partial && mixes_partials(from, to)) p.obstacle = mixed_partials;
  for (int a = 0; a < from.axes && p && policy == redistribution_policy::seed_era; ++a)
    if (from.place[a].is_strided() || to.place[a].is_strided()) {
      p.obstacle = no_strided_shards;
      p.axis = a;
    }
}

}  // namespace detail

// Law: the steps lead from `from` to `to`, both normalised; the tensor stays what it is (exactly, but that sums over two
// axes round in the order of the steps); each step is one that redistribute admits, save divisors other than 1; equal
// lists need no step.
constexpr redistribution_plan plan_redistribution(const spec& from, const spec& to,
                                                  redistribution_policy policy = redistribution_policy::late,
                                                  int devices_per_host = 0) {
  detail::redistribution_planner planner{{}, policy};
  redistribution_plan& plan = planner.plan;
  plan.from = from;
  detail::find_obstacle(plan, from, to, policy);
  if (!plan) {
    plan.cost = cost_model::infinite;
    return plan;
  }
  spec target = to;
  normalise(plan.from);
  normalise(target);
  bool equal = true;
  for (int a = 0; a < target.axes; ++a) equal = equal && plan.from.place[a] == target.place[a];
  if (!equal) policy == redistribution_policy::late ? planner.late(target) : planner.seed_era(target);
  plan.cost = redistribution_cost(plan.from, target, devices_per_host);
  return plan;
}

}  // namespace shardwise::inline v0_1
