// SPDX-License-Identifier: Apache-2.0
// Which values of the forward pass are kept for the backward pass, and which are computed again: a minimum cut.
#pragma once

#include <limits>

#include <shardwise/graph/checkpoint.hpp>
#include <shardwise/graph/stage.hpp>
#include <shardwise/graph/storage.hpp>
#include <shardwise/pass/analysis/phases.hpp>
#include <shardwise/pass/analysis/run_time.hpp>
#include <shardwise/propagation/cost.hpp>
#include <shardwise/operations/infer.hpp>

namespace shardwise::inline v0_1::passes {

// Cheap enough to compute twice: elementwise operations, rows of softmax and norms, copies, what a rank does alone.
// Products, collectives, sums and functions that nothing is known of are not, nor is a kernel with an expression behind it,
// which may store other values on the way. Random draws are functions of their site, hence the same again.
template <class Graph>
constexpr bool recomputable(const Graph& g, const node& x, const spec& in, const spec& out) {
  if (x.expression >= 0) return false;
  const recomputing again = record_of(g, x).recompute;
  if (again != recomputing::cheap_unless_it_communicates) return again == recomputing::cheap;
  const int a = static_cast<int>(attributes_of<redistribute_attributes>(x.a).axis);
  return !communicates(transition_of(in.place[a], out.place[a], in.axis_size[a]));
}

// Microseconds that computing a node takes, roughly: what it costs to compute it again, relative to others.
namespace recompute_model {
inline constexpr double flops_per_microsecond = 50e6;
inline constexpr double bytes_per_microsecond = 1e6;
}  // namespace recompute_model

// Leaves, what says where leaves lie, gathered parameters (the plan says whether those are kept), and rooms, which hold what kernels
// write there.
constexpr bool there_anyway(const node& x) {
  return is_leaf(x.op) || places_leaves(x) || gathers_parameter(x) || x.op == op_code::room;
}

// What a program may hold once, and is kept under any budget: a copy of a pack would place its operands a second time, so that the
// first lies nowhere; one of a kernel that stores several values, or of some of these, would part them; one of an update would
// write again.
template <class Graph>
constexpr bool only_once(const Graph& g, const node& x) {
  if ((x.op == op_code::pack && !places_leaves(x)) || x.op == op_code::part || is_update(x.op)) return true;
  for (int k = 0; k < x.inputs; ++k)
    if (g.nodes[x.in[k]].op == op_code::room) return true;
  return false;
}

template <class Graph>
constexpr double recompute_cost(const Graph& g, int i) {
  constexpr int origin[max_axes]{};
  const node& x = g.nodes[i];
  const spec& out = g.specs[x.spec];
  const spec& in = x.inputs > 0 ? g.specs[g.nodes[x.in[0]].spec] : out;
  const double element = static_cast<double>(size_of(out.type));
  const double moved = static_cast<double>(local_numel(in, origin) + local_numel(out, origin)) * element;
  double cost = moved / recompute_model::bytes_per_microsecond;
  if (x.op == op_code::redistribute) cost += redistribution_cost(in, out);
  if (record_of(g, x).arithmetic) cost += flops_of(g, i) / recompute_model::flops_per_microsecond;
  return cost;
}

// The network: every forward node is an arc from its inside to its outside, as wide as keeping its value costs; outsides
// lead to the insides of forward users, and to the sink where the backward pass uses the value. Nodes that must not be
// computed again hang on the source. The cut arcs are what is kept. Values that are there anyway (parameters, states,
// inputs, outputs) are no part of it, nor are gathered parameters, of which the plan says whether they are kept. Keeping a value counts its bytes times 1.1 for each step that it lies before the
// first backward use, so that of equal cuts the latest is taken.
// Solved by augmenting paths; a path stays within a few operations between two that must be kept.
template <int Nodes>
struct minimum_cut {
  static constexpr std::int64_t infinite = std::numeric_limits<std::int64_t>::max() / 4;

  phase_marks<Nodes> marks;
  std::int64_t width[Nodes]{};             // of the node's own arc
  std::int64_t through[Nodes]{};           // flow on it
  std::int64_t flow[Nodes][max_inputs]{};  // from operand k's outside to the node's inside
  std::int32_t users_begin[Nodes + 1]{};
  std::int32_t users[max_inputs * Nodes]{};  // forward users in the network, each node's together
  unsigned char member[Nodes]{};             // in the network
  unsigned char used[Nodes]{};               // by the backward pass
  unsigned char banned[Nodes]{};             // from being computed again; 2: under any budget, as a checkpoint says
  unsigned char kept[Nodes]{};               // the result: 1 where the value is kept
  std::int32_t stamp[Nodes][2]{};            // of the last search that met the inside, the outside
  std::int32_t from[Nodes][2]{};             // the arc by which it got there
  std::int32_t stack[2 * Nodes + 2]{};
  std::int32_t search = 0;
  std::int32_t cursor = 0;      // next source to saturate
  std::int32_t cut_cursor = 0;  // next source to reach the cut from; past the nodes: it is found

  // Arcs by which a search reaches a state; `via` holds the node on the other end where it is another one.
  enum arc : std::int32_t { start = 0, own_forward = 1, own_back = 2, to_user = 3, to_operand = 4 };
  struct place {
    std::int32_t node;
    std::int32_t outside;
  };
  std::int32_t via[Nodes][2]{};

  // In parts, each of some steps of evaluation a node; false when there is no part `k`.
  template <class Graph>
  constexpr bool build(const Graph& g, int k) {
    switch (k) {
      case 0: mark_phases(marks, g); return true;
      case 1: find_members(g); return true;
      case 2: list_users(g); return true;
      case 3: measure(g); return true;
      case 4: widen(g); return true;
      default: return false;
    }
  }

  template <class Graph>
  constexpr void find_members(const Graph& g) {
    const int n = g.node_count;
    int first_update = n;
    for (int i = n - 1; i >= 0; --i)
      if (is_update(g.nodes[i].op)) first_update = i;
    for (int i = 0; i < n; ++i) {
      member[i] = !there_anyway(g.nodes[i]) && marks.of(i) == program_phase::forward;
      used[i] = 0;
    }
    for (int k = 0; k < g.output_count; ++k) member[g.outputs[k]] = 0;
    for (int i = 0; i < n; ++i) {
      if (marks.of(i) == program_phase::forward) continue;
      const node& x = g.nodes[i];
      for (int k = 0; k < x.inputs; ++k) {
        used[x.in[k]] = 1;
        // once parameters are being written, what is computed from them is no longer what it was
        if (i > first_update) member[x.in[k]] = 0;
      }
    }
  }

  template <class Graph>
  constexpr void list_users(const Graph& g) {
    const int n = g.node_count;
    for (int i = 0; i <= n; ++i) users_begin[i] = 0;
    auto each = [&](auto f) {
      for (int i = n - 1; i >= 0; --i) {
        if (!member[i]) continue;
        const node& x = g.nodes[i];
        for (int k = 0; k < x.inputs; ++k)
          if (member[x.in[k]]) f(x.in[k], i);
      }
    };
    each([&](int operand, int) { ++users_begin[operand]; });
    for (int i = 0, at = 0; i <= n; ++i) {  // to one past the own users, then counted down
      at += users_begin[i];
      users_begin[i] = at;
    }
    each([&](int operand, int user) { users[--users_begin[operand]] = user; });
  }

  // Users from each member to its first backward use; 100 are as far as any.
  template <class Graph>
  constexpr void measure(const Graph& g) {
    for (int i = g.node_count - 1; i >= 0; --i) {
      if (!member[i]) continue;
      int d = used[i] ? 0 : 100;
      for (int u = users_begin[i]; u < users_begin[i + 1]; ++u) {
        const int through_user = via[users[u]][0] + 1;
        if (through_user < d) d = through_user;
      }
      via[i][0] = d;
    }
  }

  template <class Graph>
  constexpr void widen(const Graph& g) {
    constexpr int origin[max_axes]{};
    double factor[101]{1};
    for (int d = 1; d <= 100; ++d) factor[d] = factor[d - 1] * 1.1;
    const bool checkpoints = has_checkpoints(g);
    for (int i = 0; i < g.node_count; ++i) {
      if (!member[i]) continue;
      const node& x = g.nodes[i];
      const spec& out = g.specs[x.spec];
      const spec& in = x.inputs > 0 ? g.specs[g.nodes[x.in[0]].spec] : out;
      const bool view = x.inputs > 0 && may_view(x.op) && is_view(x, in, out);
      const double bytes = static_cast<double>(local_numel(out, origin) * static_cast<std::int64_t>(size_of(out.type)));
      // a node with several results has no value: what is kept is its results
      width[i] = view || has_results(g, i) ? infinite : static_cast<std::int64_t>(bytes * factor[via[i][0]]) + 1;
      banned[i] = (checkpoints && keeps_value(g, i)) || only_once(g, x) ? 2 : !recomputable(g, x, in, out);
    }
  }

  template <class Graph>
  constexpr void reset(const Graph& g) {
    for (int i = 0; i < g.node_count; ++i) {
      if (!member[i]) continue;
      through[i] = 0;
      for (int k = 0; k < g.nodes[i].inputs; ++k) flow[i][k] = 0;
    }
    cursor = cut_cursor = 0;
  }

  // Reaches what the residual network reaches from the inside of `source`; the end is the node whose outside leads to the
  // sink, -1 if none does.
  template <class Graph>
  constexpr int reach(const Graph& g, int source, stage_work& work) {
    int top = 0;
    auto push = [&](int v, int outside, arc by, int other) {
      if (stamp[v][outside] == search) return;
      stamp[v][outside] = search;
      from[v][outside] = by;
      via[v][outside] = other;
      stack[top++] = 2 * v + outside;
    };
    push(source, 0, start, -1);
    while (top > 0) {
      const int s = stack[--top], v = s / 2;
      work.take(25);
      if (s % 2 == 0) {
        if (through[v] < width[v]) push(v, 1, own_forward, v);
        const node& x = g.nodes[v];
        for (int k = 0; k < x.inputs; ++k)
          if (flow[v][k] > 0) push(x.in[k], 1, to_operand, v);
      } else {
        if (used[v]) return v;
        if (through[v] > 0) push(v, 0, own_back, v);
        for (int u = users_begin[v]; u < users_begin[v + 1]; ++u) push(users[u], 0, to_user, v);
      }
    }
    return -1;
  }

  template <class Graph>
  static constexpr int operand_slot(const Graph& g, int user, int operand) {
    const node& x = g.nodes[user];
    int k = 0;
    while (x.in[k] != operand) ++k;
    return k;
  }

  // Along the path that ends outside of `end`.
  template <class Graph>
  constexpr void augment(const Graph& g, int end, stage_work& work) {
    std::int64_t most = infinite;
    for (int pass = 0; pass < 2; ++pass) {
      place p{end, 1};
      while (from[p.node][p.outside] != start) {
        work.take(12);
        const int other = via[p.node][p.outside];
        switch (from[p.node][p.outside]) {
          case own_forward:
            if (pass == 0) most = width[p.node] - through[p.node] < most ? width[p.node] - through[p.node] : most;
            else through[p.node] += most;
            p.outside = 0;
            break;
          case own_back:
            if (pass == 0) most = through[p.node] < most ? through[p.node] : most;
            else through[p.node] -= most;
            p.outside = 1;
            break;
          case to_user:
            if (pass == 1) flow[p.node][operand_slot(g, p.node, other)] += most;
            p = {other, 1};
            break;
          default: {  // back from the inside of `other` to its operand's outside
            std::int64_t& f = flow[other][operand_slot(g, other, p.node)];
            if (pass == 0) most = f < most ? f : most;
            else f -= most;
            p = {other, 0};
            break;
          }
        }
      }
    }
  }

  // Saturates sources until the work is used up; true when none is left.
  template <class Graph>
  constexpr bool saturate(const Graph& g, stage_work& work) {
    while (cursor < g.node_count && work.take(20)) {
      if (!member[cursor] || !banned[cursor]) {
        ++cursor;
        continue;
      }
      ++search;
      const int end = reach(g, cursor, work);
      if (end < 0) ++cursor;
      else augment(g, end, work);
    }
    return cursor >= g.node_count;
  }

  // The arcs across: their insides are reached from the source, their outsides are not. True when they are found.
  template <class Graph>
  constexpr bool cut(const Graph& g, stage_work& work) {
    if (cut_cursor == 0) ++search;
    for (; cut_cursor < g.node_count && work.take(10); ++cut_cursor) {
      const int i = cut_cursor;
      if (member[i] && banned[i] && stamp[i][0] != search) reach(g, i, work);
    }
    if (cut_cursor < g.node_count) return false;
    if (cut_cursor > g.node_count) return true;
    if (work.defer(8 * g.node_count)) return false;
    work.take(8 * g.node_count);
    for (int i = 0; i < g.node_count; ++i) kept[i] = member[i] && stamp[i][0] == search && stamp[i][1] != search;
    ++cut_cursor;
    return true;
  }

  template <class Graph>
  constexpr std::int64_t kept_bytes(const Graph& g) const {
    std::int64_t total = 0;
    for (int i = 0; i < g.node_count; ++i)
      if (kept[i]) {
        const spec& s = g.specs[g.nodes[i].spec];
        total += largest_numel(s) * static_cast<std::int64_t>(size_of(s.type));
      }
    return total;
  }

  // Of a member's value; of a node with several results, of those that are there.
  template <class Graph>
  constexpr std::int64_t bytes_of(const Graph& g, int i) const {
    const auto one = [&](int id) {
      const spec& s = g.specs[g.nodes[id].spec];
      return largest_numel(s) * static_cast<std::int64_t>(size_of(s.type));
    };
    if (!has_results(g, i)) return one(i);
    std::int64_t total = 0;
    for (int u = users_begin[i]; u < users_begin[i + 1]; ++u) total += one(users[u]);
    return total;
  }

  // Lets go of kept values, the cheapest to compute again for their bytes first, until `percent` of the bytes are left.
  template <class Graph>
  constexpr void spend(const Graph& g, int percent) {
    int count = 0;
    std::int64_t total = 0;
    for (int i = 0; i < g.node_count; ++i) {
      if (!member[i] || banned[i] != 1) continue;
      if (percent == 0) banned[i] = 0;
      else if (through[i] > 0) stack[count++] = i;  // something on its way to the backward pass is kept for it
    }
    total = kept_bytes(g);
    double price[Nodes]{};  // microseconds a byte
    for (int k = 0; k < count; ++k) {
      price[stack[k]] = recompute_cost(g, stack[k]) / static_cast<double>(bytes_of(g, stack[k]) + 1);
    }
    for (int gap = count / 2; gap > 0; gap /= 2)
      for (int i = gap; i < count; ++i) {
        const std::int32_t moving = stack[i];
        const double p = price[moving];
        int j = i;
        for (; j >= gap && price[stack[j - gap]] > p; j -= gap) stack[j] = stack[j - gap];
        stack[j] = moving;
      }
    std::int64_t left = total;
    for (int i = 0; i < count && left * 100 > total * percent; ++i) {
      left -= bytes_of(g, stack[i]);
      banned[stack[i]] = 0;
    }
    reset(g);
  }
};

}  // namespace shardwise::inline v0_1::passes
