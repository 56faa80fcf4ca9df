// SPDX-License-Identifier: Apache-2.0
// Static memory: lifetimes over the graph give every buffer an offset in one arena per rank; the peak is a constant.
#pragma once

#include <cstdint>

#include <shardwise/graph/batches.hpp>
#include <shardwise/graph/graph.hpp>
#include <shardwise/graph/stage.hpp>
#include <shardwise/graph/storage.hpp>
#include <shardwise/graph/waits.hpp>
#include <shardwise/operations/infer.hpp>
#include <shardwise/pass/memory/holes.hpp>

namespace shardwise::inline v0_1::passes {

inline constexpr std::int64_t buffer_alignment = slot_alignment;

constexpr std::int64_t align_up(std::int64_t n) { return (n + buffer_alignment - 1) & -buffer_alignment; }

// Offsets are the same on all ranks: a buffer is as large as on the ranks at coordinate 0, whose chunks are the largest.
// A pack's operands lie in its storage, which is taken when the first of them is computed, and kept until nothing reads
// the pack or any of them. Packed leaves stand where the first of them does.
// The members of a batch run together: what any of them reads, and what nobody reads of their results, is given back where the last
// one stands, operands that are waited for with the last wait for any of them.
// A node with several results has no bytes; those of its results, or of the packs that they lie in, are taken where it stands, beside
// its operands', since its kernel writes all of them there.
// Parameters that lie elsewhere have no bytes here, and offsets that count from where they are.
// The arena is [workspace shared by all kernels][parameters, states, inputs][buffers that live for part of the step].
template <int Nodes>
struct memory_plan {
  std::int64_t offset[Nodes];  // of the storage's owner, plus what precedes the value in a pack; views have their operand's
  std::int64_t bytes[Nodes];   // exact size, 0 for views, updates and results that overwrite an operand
  std::int32_t owner[Nodes];   // the node whose storage a node's value lies in
  std::int32_t last_use[Nodes];
  std::int64_t workspace = 0;
  std::int64_t persistent_end = 0;
  std::int64_t peak = 0;  // one past the highest byte that a step touches
};

namespace detail {

// A node costs little here: so many times as many are placed in a stage as passes treat.
#if defined(__clang__)
inline constexpr int stage_factor = 2;
#else
inline constexpr int stage_factor = 3;
#endif

template <int Nodes>
struct memory_state : hole_table {
  memory_plan<Nodes> plan;
  storage_map<Nodes> storage;
  item_lists<Nodes> items;
  int cursor = 0;
};

// The owner of an operand whose storage node `i` may take for its result, -1: none. Pointwise kernels read an element of
// each operand before they write that of the result, so an operand that is stored just as the result is and that nothing
// reads afterwards can be overwritten, unless another operand is the same storage seen differently. So can what a slice is
// written into: then the slice is all that is copied.
template <class Plan, class Graph>
constexpr int overwritten_owner(const Plan& p, const Graph& g, const node& x, int i) {
  // logits become their own gradient: its kernels read an element, or a whole row, before they write it
  const bool scatters = x.op == op_code::slice_scatter, logits = x.op == op_code::nll_dx || x.op == op_code::nll_dx_loss;
  if (!rules::is_pointwise(x.op) && !scatters && !logits) return -1;
  for (int j = logits ? 1 : 0; j < (scatters ? 1 : logits ? 2 : x.inputs); ++j) {
    const int o = p.owner[x.in[j]];
    if (p.last_use[o] != i || g.nodes[x.in[j]].spec != x.spec || p.bytes[o] != p.bytes[i]) continue;
    bool alone = true;
    for (int k = 0; k < x.inputs; ++k) alone = alone && (p.owner[x.in[k]] != o || g.nodes[x.in[k]].spec == x.spec);
    if (alone) return o;
  }
  return -1;
}

// The leaf that node `i` may write its rows into, of an operation that is its first operand but for these, -1: none. A value that is
// copied back to the leaf in the end may lie there from the beginning, if nobody reads the leaf as it was in between: then the rows are
// all that moves, and the copy back has nothing to do.
template <class Plan, class Graph>
constexpr int written_leaf(const Plan& p, const storage_map<Graph::node_capacity>& storage, const Graph& g, const node& x,
                           int i) {
  if (!is_custom(g, x) || !record_of(g, x).writes_into_first || p.owner[i] != i) return -1;
  const int leaf = x.in[0];
  if (!is_leaf(g.nodes[leaf].op) || storage.owner[leaf] != leaf || g.nodes[leaf].spec != x.spec) return -1;
  for (int k = 1; k < x.inputs; ++k)
    if (storage.owner[x.in[k]] == leaf) return -1;
  for (int j = i + 1; j < g.node_count; ++j) {
    const node& y = g.nodes[j];
    if (y.op == op_code::assign && storage.owner[y.in[0]] == leaf) return y.in[0] == leaf && y.in[1] == i ? leaf : -1;
    if (y.op == op_code::wait)
      if (const int c = collective_of(g, j); c >= 0) {
        bool reads = false;
        each_member(g, c, [&](int member) { reads = reads || storage.owner[g.nodes[member].in[0]] == leaf; });
        if (reads) return -1;
      }
    for (int k = 0; k < y.inputs; ++k)
      if (storage.owner[y.in[k]] == leaf) return -1;
  }
  return -1;
}

}  // namespace detail

// Backend::workspace_bytes<Source>() -> bytes of scratch that any of its kernels needs at most.
template <class Backend>
struct plan_memory {
  // A source may ask for at least as much as other programs need that share its arena: then leaves are at equal offsets.
  template <class Source>
  static constexpr std::int64_t least_workspace() {
    if constexpr (requires { Source::template least_workspace<Backend>; }) return Source::template least_workspace<Backend>;
    else return 0;
  }
  template <class Source>
  static constexpr std::int64_t workspace = [] {
    constexpr std::int64_t own = Backend::template workspace_bytes<Source>(), least = least_workspace<Source>();
    return align_up(own > least ? own : least);
  }();

  // Whether parameters and buffers lie in another program's arena (with_parameters_of).
  template <class Source>
  static constexpr bool parameters_elsewhere = requires { Source::parameters_elsewhere; };

  // The plan of a graph made at run time.
  template <class Graph>
  static memory_plan<Graph::node_capacity> plan_of(const Graph& g, std::int64_t workspace_bytes) {
    detail::memory_state<Graph::node_capacity> st{};
    st.plan.workspace = align_up(workspace_bytes);
    begin(st, g);
    place(st, g, g.node_count);
    return st.plan;
  }

  template <class Source>
  static constexpr int stages(int nodes) {
    return (Source::value.node_count + detail::stage_factor * nodes - 1) / (detail::stage_factor * nodes);
  }

  template <class Source>
  using state = detail::memory_state<graph_type_of<Source>::node_capacity>;

  template <class Source, class State>
  static constexpr void start(State& st) {
    st.plan.workspace = workspace<Source>;
    begin(st, Source::value, parameters_elsewhere<Source>);
  }

  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    place(st, Source::value, nodes);
  }

 private:
  // Owners, sizes and last uses of all; leaves placed.
  template <class State, class Graph>
  static constexpr void begin(State& st, const Graph& g, bool elsewhere = false) {
    const int n = g.node_count, s = g.spec_count;
    std::int64_t spec_bytes[Graph::spec_capacity]{};
    for (int i = 0; i < s; ++i)
      spec_bytes[i] = largest_numel(g.specs[i]) * static_cast<std::int64_t>(size_of(g.specs[i].type));
    detail::clear_holes(st);
    auto& p = st.plan;
    find_storage(g, st.storage);
    st.items.find(g);
    st.top = p.workspace;
    for (int i = 0; i < n; ++i) {
      const node& x = g.nodes[i];
      const int own = st.storage.owner[i];
      p.offset[i] = -1;
      p.owner[i] = own;
      const bool alias = x.inputs > 0 && own != i && runs_nothing(x, g);
      p.bytes[i] = alias || has_results(g, i) ? 0 : spec_bytes[x.spec];
      for (int k = 0; k < x.inputs; ++k) p.last_use[st.storage.owner[x.in[k]]] = i;
      if (x.op == op_code::wait)  // until then the collective reads its operand
        if (const int c = collective_of(g, i); c >= 0)
          each_member(g, c, [&](int j) { p.last_use[st.storage.owner[g.nodes[j].in[0]]] = i; });
      p.last_use[i] = i;
      p.last_use[own] = i;
      if (x.op == op_code::redistribute && batch_number(x) != 0)
        p.last_use[i] = p.last_use[own] = p.last_use[st.storage.owner[x.in[0]]] = batch_end(g, i) - 1;
    }
    for (int i = n; i < Graph::node_capacity; ++i) {
      p.offset[i] = p.bytes[i] = 0;
      p.owner[i] = p.last_use[i] = 0;
    }
    for (int i = 0; i < g.output_count; ++i) p.last_use[p.owner[g.outputs[i]]] = n;
    for (int i = 0; i < n; ++i) {
      if (!is_leaf(g.nodes[i].op)) continue;
      const int own = p.owner[i];
      if (elsewhere && (g.nodes[i].op == op_code::param || g.nodes[i].op == op_code::module_buffer)) {
        p.bytes[i] = 0;
        if (own == i) p.offset[own] = 0;
      }
      if (p.offset[own] < 0) {
        const std::int64_t bytes = spec_bytes[g.nodes[own].spec];
        p.offset[own] = st.top;
        if (bytes > 0) p.peak = st.top + bytes;
        st.top += align_up(bytes);
      }
      p.offset[i] = p.offset[own] + st.storage.within[i];
      p.last_use[i] = p.last_use[own] = n;
    }
    p.persistent_end = st.top;
  }

  // Views, updates and the later links of packs have no elements of their own.
  template <class Graph>
  static constexpr bool runs_nothing(const node& x, const Graph& g) {
    return is_update(x.op) || x.op == op_code::pack ||
           (may_view(x.op) && is_view(x, g.specs[g.nodes[x.in[0]].spec], g.specs[x.spec]));
  }

  template <class State>
  static constexpr void take_for(State& st, int own) {
    auto& p = st.plan;
    const std::int64_t bytes = p.bytes[own];
    const std::int64_t at = detail::take(st, align_up(bytes));
    p.offset[own] = at;
    if (bytes > 0 && at + bytes > p.peak) p.peak = at + bytes;
  }

  // A member of a batch: see memory_plan. Nothing is given back before the last one, so results that are taken in turn are apart
  // from all operands and from each other.
  template <class State, class Graph>
  static constexpr void place_member(State& st, const Graph& g, int i) {
    auto& p = st.plan;
    const int own = p.owner[i];
    if (p.offset[own] < 0) take_for(st, own);
    if (own != i) p.offset[i] = p.offset[own] + st.storage.within[i];
    if (i + 1 != batch_end(g, i)) return;
    each_operand_storage(g, p.owner, i, [&](int o) {
      if (p.last_use[o] == i && p.offset[o] >= 0) detail::give_back(st, p.offset[o], align_up(p.bytes[o]));
    });
    each_member(g, i, [&](int j) {
      if (p.owner[j] == j && p.last_use[j] == i) detail::give_back(st, p.offset[j], align_up(p.bytes[j]));
    });
  }

  // One node: its storage is taken, from an operand if one can be overwritten; then that of operands it was the last to
  // read is given back.
  template <class State, class Graph>
  static constexpr void place(State& st, const Graph& g, int nodes) {
    const int count = g.node_count;
    auto& p = st.plan;
    const int end = st.cursor + detail::stage_factor * nodes < count ? st.cursor + detail::stage_factor * nodes : count;
    for (int i = st.cursor; i < end; ++i) {
      const node& x = g.nodes[i];
      if (is_leaf(x.op)) continue;
      int own = p.owner[p.owner[i]];  // the owner found so far may have moved into another's storage since
      if (own == i) {
        const int leaf = detail::written_leaf(p, st.storage, g, x, i);
        const int over = leaf >= 0 ? leaf : detail::overwritten_owner(p, g, x, i);
        if (over >= 0) {
          own = over;
          if (leaf < 0) p.last_use[own] = p.last_use[i];
          p.bytes[i] = 0;
        }
      }
      p.owner[i] = own;
      if (x.op == op_code::redistribute && batch_number(x) != 0) {
        place_member(st, g, i);
        continue;
      }
      if (p.offset[own] < 0) take_for(st, own);
      for (int k = st.items.first[i]; k >= 0; k = st.items.next[k])
        if (const int o = p.owner[k]; p.offset[o] < 0) take_for(st, o);
      if (own != i) p.offset[i] = p.offset[own] + st.storage.within[i];
      for (int j = 0; j < x.inputs; ++j) {
        const int o = p.owner[x.in[j]];
        if (p.last_use[o] != i || o == own) continue;
        bool again = false;  // an operand given twice dies once
        for (int e = 0; e < j; ++e) again = again || p.owner[x.in[e]] == o;
        if (!again) detail::give_back(st, p.offset[o], align_up(p.bytes[o]));
      }
      if (x.op == op_code::wait)
        if (const int c = collective_of(g, i); c >= 0)
          each_operand_storage(g, p.owner, c, [&](int o) {
            if (p.last_use[o] == i && o != own) detail::give_back(st, p.offset[o], align_up(p.bytes[o]));
          });
      if (own == i && p.last_use[i] == i) detail::give_back(st, p.offset[i], align_up(p.bytes[i]));
    }
    if (st.cursor < end) st.cursor = end;
  }
};

template <class Backend, class Source, int Nodes = stage_nodes>
struct planned_memory {
  static constexpr const auto& value = staged<plan_memory<Backend>, Source, Nodes>::value.plan;
};

}  // namespace shardwise::inline v0_1::passes
