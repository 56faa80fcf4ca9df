// SPDX-License-Identifier: Apache-2.0
// verify: the invariants of a graph: operands come first, and every node has the extents and placements its rule gives.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/graph/storage.hpp>
#include <shardwise/graph/verify/verify_fused.hpp>
#include <shardwise/operations/infer.hpp>

namespace shardwise::inline v0_1 {

// Of each application of an operation, the node that was checked last: layers repeat, and a rule costs a hundred times
// what comparing two nodes does.
struct checked_applications {
  static constexpr unsigned size = 256;
  std::int32_t node_of[size];  // plus one; 0: none
  std::int64_t last_batch = 0;
  std::int32_t first_pack = -1, last_pack = -1;

  constexpr checked_applications() {
    for (std::int32_t& n : node_of) n = 0;
  }

  template <class Graph>
  static constexpr unsigned place_of(const Graph& g, const node& n) {
    unsigned h = static_cast<unsigned>(n.op) * 37U + static_cast<unsigned>(n.spec) * 5U +
                 static_cast<unsigned>(n.expression) + static_cast<unsigned>(n.a.v[0]) * 7U +
                 static_cast<unsigned>(n.a.v[0] >> 32) + static_cast<unsigned>(n.a.v[1]) * 3U;
    for (int k = 0; k < n.inputs; ++k) h = h * 31U + static_cast<unsigned>(g.nodes[n.in[k]].spec);
    h *= 0x9e3779b1U;
    return h >> 24 & (size - 1);
  }
  // Whether the two nodes are one application: the same operation on operands of the same specs.
  template <class Graph>
  static constexpr bool same(const Graph& g, const node& a, const node& b) {
    if (a.op != b.op || a.spec != b.spec || a.inputs != b.inputs || a.expression != b.expression) return false;
    for (int k = 0; k < a.inputs; ++k) {
      const node& x = g.nodes[a.in[k]];
      const node& y = g.nodes[b.in[k]];
      if (x.spec != y.spec || (x.op == op_code::room) != (y.op == op_code::room)) return false;
      if ((x.op == op_code::custom) != (y.op == op_code::custom)) return false;
      if (a.op == op_code::getitem && !same(g, x, y)) return false;  // results alike are those of applications alike
    }
    return a.a == b.a;
  }
  // Whether node b, the i-th, is the application that a is, whose check says all of it: not packs, which lie where
  // others do, nor what reads a user's operation, which has a table of its own.
  template <class Graph>
  static constexpr bool repeats(const Graph& g, const node& a, const node& b, int i) {
    const op_code op = b.op;
    const int inputs = b.inputs;
    if (a.op != op || a.spec != b.spec || a.inputs != inputs || a.expression != b.expression || !(a.a == b.a)) return false;
    if (op == op_code::part || op == op_code::pack || op == op_code::unpack) return false;
    for (int k = 0; k < inputs; ++k) {
      const int at = b.in[k];
      if (at < 0 || at >= i) return false;
      const node &x = g.nodes[a.in[k]], &y = g.nodes[at];
      if (x.spec != y.spec || x.op == op_code::custom || y.op == op_code::custom) return false;
      if (x.op != y.op && (x.op == op_code::room || y.op == op_code::room)) return false;
    }
    return true;
  }
};
// Of a graph that was verified, what the next one need not infer again: most of a pass's result is as it was.
template <class Graph>
struct verified_graph {
  const Graph& g;
  const checked_applications& memory;
  int specs;  // how many of the first specs both graphs have at the same numbers

  // Whether the application of node n of `now` was checked there. Expressions, a user's operations and functions stand in
  // tables of their own, so nodes that name one are checked anew.
  template <class Now>
  constexpr bool knows(const Now& now, const node& n, unsigned place) const {
    const std::int32_t known = memory.node_of[place];
    if (known == 0 || n.expression >= 0 || n.spec >= specs || n.op == op_code::custom || n.op == op_code::opaque ||
        n.op == op_code::getitem)
      return false;
    const node& o = g.nodes[known - 1];
    if (o.op != n.op || o.spec != n.spec || o.inputs != n.inputs || o.expression >= 0) return false;
    for (int k = 0; k < n.inputs; ++k) {
      const node& x = now.nodes[n.in[k]];
      const node& y = g.nodes[o.in[k]];
      if (x.spec != y.spec || x.spec >= specs || (x.op == op_code::room) != (y.op == op_code::room)) return false;
    }
    return o.a == n.a;
  }
};
struct nothing_verified {
  template <class Now>
  constexpr bool knows(const Now&, const node&, unsigned) const {
    return false;
  }
};

// A pack's operands have storage for it to place and are as it says of them; an unpacked slot lies in its pack.
template <class Graph>
constexpr problem storage_problem(const Graph& g, int i) {
  const node& n = g.nodes[i];
  const spec& flat = g.specs[n.spec];
  const auto places_fit = [](const spec& whole, const spec& part) {
    bool fit = whole.type == part.type && whole.axes == part.axes;
    for (int a = 0; fit && a < whole.axes; ++a) {
      const placement &p = whole.place[a], &q = part.place[a];
      fit = p.is_partial() || q.is_partial() ? p == q : p.is_shard() || !q.is_shard();
    }
    return fit;
  };
  constexpr int origin[max_axes]{};
  const std::int64_t size = static_cast<std::int64_t>(size_of(flat.type));
  const auto of = attributes_of<storage_attributes>(n.a);
  if (n.op == op_code::unpack) {
    const spec& from = g.specs[g.nodes[n.in[0]].spec];
    const bool inside = of.at >= 0 && of.at + slot_bytes(flat) / size <= local_numel(from, origin);
    return from.rank == 1 && inside && is_contiguous(flat) && places_fit(from, flat) ? problem::none
                                                                                     : problem::graph_storage;
  }
  std::int64_t at = of.at;
  if (flat.rank != 1 || at * size % slot_alignment != 0) return problem::graph_storage;
  const int first = goes_on(n) ? 1 : 0;
  if (first == 1) {  // goes on where the operand ends
    const node& before = g.nodes[n.in[0]];
    if (before.op != op_code::pack || before.spec != n.spec || places_leaves(before) != places_leaves(n))
      return problem::graph_storage;
    std::int64_t end = attributes_of<storage_attributes>(before.a).at;
    for (int k = goes_on(before) ? 1 : 0; k < before.inputs; ++k)
      end += slot_bytes(g.specs[g.nodes[before.in[k]].spec]) / size;
    if (end != at) return problem::graph_storage;
  }
  for (int k = first; k < n.inputs; ++k) {
    const node& x = g.nodes[computed_by(g, n.in[k])];
    const spec& s = g.specs[x.spec];
    const bool leaf = x.op == op_code::param || x.op == op_code::state;
    const bool own =
        leaf || x.op == op_code::part || x.op == op_code::getitem ||
        (runs_kernel(x.op) && !is_update(x.op) && !(x.inputs > 0 && is_view(x, g.specs[g.nodes[x.in[0]].spec], s)));
    if (!own || leaf != places_leaves(n) || !is_contiguous(s) || !places_fit(flat, s)) return problem::graph_storage;
    at += slot_bytes(s) / size;
  }
  return at <= local_numel(flat, origin) ? problem::none : problem::graph_storage;
}

// The pack among [first, last] that places what another one has placed, -1: none. The first one's room for it would never be written.
template <class Graph>
constexpr int packed_again(const Graph& g, int first, int last) {
  constexpr int words = Graph::node_capacity / 64 + 1;
  std::uint64_t placed[words]{};
  for (int i = first; i <= last; ++i) {
    const node& n = g.nodes[i];
    if (n.op != op_code::pack) continue;
    for (int k = goes_on(n) ? 1 : 0; k < n.inputs; ++k) {
      const int x = computed_by(g, n.in[k]);
      const std::uint64_t bit = std::uint64_t{1} << x % 64;
      if ((placed[x / 64] & bit) != 0) return i;
      placed[x / 64] |= bit;
    }
  }
  return -1;
}

// Whether a rule's result has a node's extents, type and placements, however it is stored.
constexpr bool infers(const spec& rule, const spec& out) {
  bool same = rule.rank == out.rank && rule.type == out.type;
  for (int d = 0; same && d < out.rank; ++d) same = same_extent(rule, d, out, d);
  for (int a = 0; same && a < out.axes; ++a) same = rule.place[a] == out.place[a];
  return same;
}

// What a node's rule gives, as its first result or another one. Constants are charged for every spec that is copied, so one or two
// operands do not pay for eight.
template <class Graph>
constexpr outcome inferred(const Graph& g, const node& n, int result = 0) {
  const auto operand = [&g, &n](int k) -> const spec& { return g.specs[g.nodes[n.in[k]].spec]; };
  if (n.inputs == 1) return infer(record_of(g, n), n.a, &operand(0), 1, result);
  if (n.inputs == 2) {
    const spec both[] = {operand(0), operand(1)};
    return infer(record_of(g, n), n.a, both, 2, result);
  }
  spec in[max_inputs]{};
  for (int k = 0; k < n.inputs; ++k) in[k] = operand(k);
  return infer(record_of(g, n), n.a, in, n.inputs, result);
}

// Whether a getitem names a result of an operand that has several, and no other node names it.
template <class Graph>
constexpr bool names_result(const Graph& g, int i) {
  const node& n = g.nodes[i];
  return n.inputs == 1 && has_results(g, n.in[0]) &&
         item_of(g, n.in[0], static_cast<int>(attributes_of<getitem_attributes>(n.a).result), i) < 0;
}
// Whether the result that a getitem names exists by its operand's rule, and has the getitem's spec.
template <class Graph>
constexpr bool is_result(const Graph& g, const node& n) {
  const outcome o = inferred(g, g.nodes[n.in[0]], static_cast<int>(attributes_of<getitem_attributes>(n.a).result));
  return !o.error && infers(o.out, g.specs[n.spec]) && is_contiguous(g.specs[n.spec]);
}

// Checks nodes [begin, end), but not what `before` knows; the finding's operand is the node's id. Usable in constants and at
// run time; forward and backward nodes alike, so that differentiation answers to the same rules as the user.
template <class Graph, class Before>
constexpr finding verify(const Graph& g, int begin, int end, checked_applications& memory, const Before& before) {
  int next = -1;  // the node that this one repeats if layers do: the one after that which the last one repeated
  for (int i = begin; i < end; ++i) {
    const node& n = g.nodes[i];
    if (n.op == op_code::redistribute && batch_number(n) != 0)
      if (const problem p = batch_problem(g, i, memory.last_batch); p != problem::none) return {p, i};
    if (next >= 0 && next < i && checked_applications::repeats(g, g.nodes[next], n, i)) {
      ++next;
      continue;
    }
    const int after = next < 0 ? -1 : next + 1;  // leaves and parts, which are no repeats, do not end a row of them
    next = -1;
    if (n.inputs == 0) {  // leaves and fills are placed by their makers
      next = after;
      continue;
    }
    for (int k = 0; k < n.inputs; ++k)
      if (n.in[k] < 0 || n.in[k] >= i) return {problem::graph_cycle, i};
    for (int k = 0; k < n.inputs; ++k)
      if (g.nodes[n.in[k]].op == op_code::custom && n.op != op_code::getitem && has_results(g, n.in[k]))
        return {problem::graph_results, i};
    if (n.op == op_code::getitem && !names_result(g, i)) return {problem::graph_results, i};
    if (n.op == op_code::expand) continue;  // an adjoint whose placement the primal chooses; see its proof
    if (n.op == op_code::part) {
      if (!part_fits(g, n)) return {problem::graph_unplaced, i};
      next = after;
      continue;
    }
    if (n.op == op_code::pack || n.op == op_code::unpack) {
      if (const problem p = storage_problem(g, i); p != problem::none) return {p, i};
      if (n.op == op_code::pack) {
        if (memory.first_pack < 0) memory.first_pack = i;
        memory.last_pack = i;
      }
      continue;
    }
    const unsigned place = checked_applications::place_of(g, n);
    std::int32_t& known = memory.node_of[place];
    if (known > 0 && checked_applications::same(g, g.nodes[known - 1], n)) {
      next = known;
      continue;
    }
    if (before.knows(g, n, place)) {
      known = i + 1;
      continue;
    }
    if (n.op == op_code::getitem) {
      if (!is_result(g, n)) return {problem::graph_results, i};
      known = i + 1;
      continue;
    }
    if (is_fused(n)) {
      if (!fused_fits(g, n)) return {problem::graph_unplaced, i};
      known = i + 1;
      continue;
    }
    if (n.op == op_code::opaque) {
      if (!is_opaque_placed(g, n)) return {problem::graph_unplaced, i};
      known = i + 1;
      continue;
    }
    if (n.op == op_code::relabel) {  // a claim of the user, about blocks of given extents
      if (!same_blocks(g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec])) return {problem::graph_unplaced, i};
      known = i + 1;
      continue;
    }
    if (is_optimizer_term(n.op) || n.op == op_code::assign ||
        n.op == op_code::in_place) {  // all operands are of equal blocks
      for (int k = 1; k < (is_optimizer_term(n.op) && attributes_of<adam_term_attributes>(n.a).which != 3 ? 3 : 2); ++k)
        if (!same_blocks(g.specs[g.nodes[n.in[0]].spec], g.specs[g.nodes[n.in[k]].spec]))
          return {problem::graph_unplaced, i};
    }
    if (n.op == op_code::advance) continue;
    if ((is_update(n.op) && n.op != op_code::copy_) || is_optimizer_term(n.op)) {
      for (int a = 0; a < g.specs[n.spec].axes; ++a)
        if (const placement& given = g.specs[g.nodes[n.in[1]].spec].place[a];
            given.is_partial() && !(given == g.specs[n.spec].place[a]))
          return {problem::graph_unplaced, i, -1, a};
      known = i + 1;
      continue;
    }
    const outcome o = inferred(g, n);
    const spec& out = g.specs[n.spec];
    bool same = !o.error && o.out.rank == out.rank && o.out.type == out.type;
    for (int d = 0; same && d < out.rank; ++d) same = same_extent(o.out, d, out, d);
    for (int a = 0; same && a < out.axes; ++a)
      if (!(o.out.place[a] == out.place[a])) return {problem::graph_unplaced, i, -1, a};
    if (!same || !(is_contiguous(out) || is_view(n, g.specs[g.nodes[n.in[0]].spec], out) || is_update(n.op) ||
                   (is_channels_last(out) && may_be_strided(g, n))))
      return {problem::graph_unplaced, i};  // kernels store densely
    if (n.op == op_code::contiguous && is_channels_last(o.out) != is_channels_last(out)) return {problem::graph_unplaced, i};
    known = i + 1;
  }
  if (end == g.node_count && memory.first_pack < memory.last_pack)
    if (const int i = packed_again(g, memory.first_pack, memory.last_pack); i >= 0) return {problem::graph_packed_twice, i};
  for (int k = 0; end == g.node_count && k < g.output_count; ++k)
    if (has_results(g, g.outputs[k])) return {problem::graph_results, g.outputs[k]};
  return {};
}

template <class Graph>
constexpr finding verify(const Graph& g, int begin, int end) {
  checked_applications none;
  return verify(g, begin, end, none, nothing_verified{});
}

template <class Graph>
constexpr finding verify(const Graph& g) {
  return verify(g, 0, g.node_count);
}

}  // namespace shardwise::inline v0_1
