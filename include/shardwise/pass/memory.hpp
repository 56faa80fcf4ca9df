// SPDX-License-Identifier: Apache-2.0
// Static memory: lifetimes over the graph give every buffer an offset in one arena per rank; the peak is a constant.
#pragma once

#include <shardwise/graph/graph.hpp>
#include <shardwise/graph/stage.hpp>

namespace shardwise::passes {

inline constexpr std::int64_t buffer_alignment = 64;

constexpr std::int64_t align_up(std::int64_t n) { return (n + buffer_alignment - 1) / buffer_alignment * buffer_alignment; }

// Offsets are the same on all ranks: a buffer is as large as on the ranks at coordinate 0, whose chunks are the largest.
// The arena is [workspace shared by all kernels][parameters, states, inputs][buffers that live for part of the step].
template <int Nodes>
struct memory_plan {
  std::int64_t offset[Nodes]{};  // of the storage's owner; views have their owner's
  std::int64_t bytes[Nodes]{};   // exact size, 0 for views and updates
  std::int32_t owner[Nodes]{};   // the node whose storage a node's value lies in
  std::int32_t last_use[Nodes]{};
  std::int64_t workspace = 0;
  std::int64_t persistent_end = 0;
  std::int64_t peak = 0;  // one past the highest byte that a step touches
};

namespace detail {

inline constexpr int max_holes = 512;

struct hole {
  std::int64_t begin, end;
};

template <int Nodes>
struct memory_state {
  memory_plan<Nodes> plan{};
  hole holes[max_holes]{};
  int hole_count = 0;
  std::int64_t top = 0;  // everything above is free
  int cursor = 0;
};

// Smallest hole that fits, the lowest of equals; else the top, grown from a hole that touches it.
template <class State>
constexpr std::int64_t take(State& st, std::int64_t bytes) {
  const std::int64_t need = align_up(bytes);
  if (need == 0) return st.top;
  int best = -1;
  std::int64_t best_size = 0;
  hole* const holes = st.holes;
  for (int i = 0; i < st.hole_count; ++i) {
    const std::int64_t size = holes[i].end - holes[i].begin;
    if (size >= need && (best < 0 || size < best_size)) {
      best = i;
      best_size = size;
    }
  }
  if (best >= 0) {
    const std::int64_t at = holes[best].begin;
    holes[best].begin += need;
    if (holes[best].begin == holes[best].end) {
      for (int i = best; i + 1 < st.hole_count; ++i) holes[i] = holes[i + 1];
      --st.hole_count;
    }
    return at;
  }
  std::int64_t at = st.top;
  if (st.hole_count > 0 && holes[st.hole_count - 1].end == st.top) {
    at = holes[st.hole_count - 1].begin;
    --st.hole_count;
  }
  st.top = at + need;
  return at;
}

template <class State>
constexpr void give_back(State& st, std::int64_t at, std::int64_t bytes) {
  const std::int64_t size = align_up(bytes);
  if (size == 0) return;
  hole* const holes = st.holes;
  int i = st.hole_count;
  while (i > 0 && holes[i - 1].begin > at) --i;
  const bool joins_left = i > 0 && holes[i - 1].end == at;
  const bool joins_right = i < st.hole_count && holes[i].begin == at + size;
  if (joins_left && joins_right) {
    holes[i - 1].end = holes[i].end;
    for (int k = i; k + 1 < st.hole_count; ++k) holes[k] = holes[k + 1];
    --st.hole_count;
  } else if (joins_left) {
    holes[i - 1].end = at + size;
  } else if (joins_right) {
    holes[i].begin = at;
  } else if (st.hole_count < max_holes) {  // a full table only costs memory: the bytes stay unused
    for (int k = st.hole_count; k > i; --k) holes[k] = holes[k - 1];
    holes[i] = {at, at + size};
    ++st.hole_count;
  }
}

}  // namespace detail

// Backend::workspace(node, in specs, out spec) -> bytes of scratch that its kernel needs at most.
template <class Backend>
struct plan_memory {
  template <class Source>
  static constexpr std::int64_t workspace = align_up(Backend::template workspace_bytes<Source>());

  template <class Source>
  static constexpr int stages(int nodes) {
    return (graph_type_of<Source>::node_capacity + 2 * nodes - 1) / (2 * nodes);
  }

  template <class Source>
  static constexpr auto start() {
    const auto g = Source::value;
    const int n = g.node_count, s = g.spec_count;
    detail::memory_state<graph_type_of<Source>::node_capacity> st;
    constexpr int origin[max_axes]{};
    std::int64_t spec_bytes[graph_type_of<Source>::spec_capacity]{};
    for (int i = 0; i < s; ++i) spec_bytes[i] = local_numel(g.specs[i], origin) * static_cast<std::int64_t>(size_of(g.specs[i].type));
    auto& p = st.plan;
    const node* const nodes = g.nodes;
    std::int32_t* const owner = p.owner;
    std::int32_t* const last_use = p.last_use;
    for (int i = 0; i < n; ++i) {
      const node& x = nodes[i];
      int own = i;
      if (is_update(x.op) || (x.inputs > 0 && is_view(x, g.specs[nodes[x.in[0]].spec], g.specs[x.spec]))) own = owner[x.in[0]];
      else p.bytes[i] = spec_bytes[x.spec];
      for (int k = 0; k < x.inputs; ++k) last_use[owner[x.in[k]]] = i;
      owner[i] = own;
      last_use[i] = last_use[own] = i;
    }
    for (int i = 0; i < g.output_count; ++i) p.last_use[p.owner[g.outputs[i]]] = n;
    p.workspace = workspace<Source>;
    st.top = p.workspace;
    for (int i = 0; i < n; ++i) {
      const op_code op = nodes[i].op;
      if (op != op_code::param && op != op_code::state && op != op_code::input) continue;
      p.last_use[i] = n;
      p.offset[i] = st.top;
      if (p.bytes[i] > 0) p.peak = st.top + p.bytes[i];
      st.top += align_up(p.bytes[i]);
    }
    p.persistent_end = st.top;
    return st;
  }

  // One node: its storage is taken, then that of operands it was the last to read is given back.
  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    const auto g = Source::value;
    const int count = g.node_count;
    const node* const all = g.nodes;
    auto& p = st.plan;
    const std::int32_t* const owner = p.owner;
    const std::int32_t* const last_use = p.last_use;
    const std::int64_t* const bytes = p.bytes;
    std::int64_t* const offset = p.offset;
    const int end = st.cursor + 2 * nodes < count ? st.cursor + 2 * nodes : count;  // these nodes cost little
    for (int i = st.cursor; i < end; ++i) {
      const node& x = all[i];
      const int own = owner[i];
      const bool leaf = x.op == op_code::param || x.op == op_code::state || x.op == op_code::input;
      if (leaf) continue;
      if (own != i) offset[i] = offset[own];
      else {
        offset[i] = detail::take(st, bytes[i]);
        if (bytes[i] > 0 && offset[i] + bytes[i] > p.peak) p.peak = offset[i] + bytes[i];
      }
      for (int j = 0; j < x.inputs; ++j) {
        const int o = owner[x.in[j]];
        if (last_use[o] != i || o == own) continue;
        bool again = false;  // an operand given twice dies once
        for (int e = 0; e < j; ++e) again = again || owner[x.in[e]] == o;
        if (!again) detail::give_back(st, offset[o], bytes[o]);
      }
      if (own == i && last_use[i] == i) detail::give_back(st, offset[i], bytes[i]);
    }
    if (st.cursor < end) st.cursor = end;
  }
};

template <class Backend, class Source, int Nodes = stage_nodes>
struct planned_memory {
  static constexpr const auto& value = staged<plan_memory<Backend>, Source, Nodes>::value.plan;
};

}  // namespace shardwise::passes
