// SPDX-License-Identifier: Apache-2.0
// Splitters: which subgraph each node of a program belongs to, where its parts are optimised one by one.
#pragma once

#include <shardwise/pass/analysis/phases.hpp>
#include <shardwise/pass/layout/decision.hpp>

namespace shardwise::inline v0_1 {

// All of a program is one graph.
struct whole_graph {
  static constexpr bool splits = false;
};

// As torch.compile splits what DistributedDataParallel wraps, so that gradients of one part are summed while the part before it goes
// backwards: a walk from the last operation of the forward pass to the first, in which a part is full when the trained parameters that
// it reads have FirstBytes, of parts before the last one CapBytes, and something outside of it reads what it computes.
template <std::int64_t FirstBytes = (std::int64_t{1} << 20), std::int64_t CapBytes = (std::int64_t{25} << 20)>
struct ddp_buckets {
  static constexpr bool splits = true;
  static constexpr std::int64_t first = FirstBytes, cap = CapBytes;
  static_assert(FirstBytes > 0 && CapBytes > 0, "shardwise: ddp_buckets: bytes of a part are more than 0.");
};

namespace passes {

// Law: a part is a run of the forward pass's operations, part 0 the first one; a parameter counts in the part that reads it last. An
// adjoint belongs to the part of the forward values that it reads, one of a convolution to that convolution's part; what reads none
// belongs where its cotangents come from. Leaves belong to no part (-1): whoever reads one decides for itself.
template <int Nodes>
struct subgraph_map {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  int of[capacity];
  int count;

  constexpr void clear() {
    for (int& p : of) p = -1;
    count = 0;
  }
  template <class Splitter, class Graph>
  constexpr void find(const Graph& g) {
    clear();
    if constexpr (!Splitter::splits) {
      for (int i = 0; i < g.node_count; ++i) of[i] = is_leaf(g.nodes[i].op) ? -1 : 0;
      count = 1;
    } else {
      split(g, Splitter::first, Splitter::cap);
    }
  }

  // Whether a value of one part is read in another one.
  template <class Graph>
  constexpr bool is_boundary(const Graph& g, int value, int reader) const {
    return of[value] >= 0 && of[value] != of[reader] && !is_leaf(g.nodes[value].op);
  }

 private:
  template <class Graph>
  constexpr void split(const Graph& g, std::int64_t first, std::int64_t cap) {
    phase_marks<Nodes> phase;
    mark_phases(phase, g);
    const auto is_forward = [&](int i) { return phase.of(i) == program_phase::forward && !is_leaf(g.nodes[i].op); };
    int trained[capacity];  // the parameter that a value is, gathered or cast
    bool counted[capacity];
    int last_reader[capacity];
    for (int i = 0; i < capacity; ++i) {
      trained[i] = last_reader[i] = -1;
      counted[i] = false;
    }
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      if (n.op == op_code::param && !is_frozen_parameter(n)) trained[i] = i;
      if (n.op == op_code::redistribute || n.op == op_code::cast || n.op == op_code::wait) trained[i] = trained[n.in[0]];
      if (is_forward(i))
        for (int k = 0; k < n.inputs; ++k) last_reader[n.in[k]] = i;
    }
    for (int k = 0; k < g.output_count; ++k) last_reader[g.outputs[k]] = g.node_count;
    // backwards; numbers from the last part on, turned round at the end
    std::int64_t bytes = 0;
    int part = 0, begin = g.node_count, end = g.node_count;  // the part's nodes are in [begin, end)
    for (int i = g.node_count - 1; i >= 0; --i) {
      if (!is_forward(i)) continue;
      if (bytes >= (part == 0 ? first : cap) && is_read_outside(g, last_reader, begin, end)) {
        ++part;
        bytes = 0;
        end = begin;
      }
      const node& n = g.nodes[i];
      for (int k = 0; k < n.inputs; ++k) {
        const int p = trained[n.in[k]];
        if (p < 0 || counted[p]) continue;
        counted[p] = true;
        bytes += numel(g.spec_of(p)) * static_cast<std::int64_t>(size_of(g.spec_of(p).type));
      }
      of[i] = part;
      begin = i;
    }
    // what the first operations leave without parameters goes with the part behind them
    const bool merged = part > 0 && bytes == 0;
    count = part + (merged ? 0 : 1);
    for (int i = 0; i < g.node_count; ++i)
      if (of[i] >= 0) of[i] = merged && of[i] == part ? 0 : count - 1 - of[i];
    place_adjoints(g, is_forward);
  }

  // Whether something behind nodes [begin, end) reads one of them. Of the last part it is an output.
  template <class Graph>
  constexpr bool is_read_outside(const Graph& g, const int* last_reader, int begin, int end) const {
    for (int i = begin; i < end && i < g.node_count; ++i)
      if (of[i] >= 0 && last_reader[i] >= end) return true;
    return false;
  }

  template <class Graph, class Forward>
  constexpr void place_adjoints(const Graph& g, const Forward& is_forward) {
    int by_weight[capacity], by_image[capacity];  // the convolution that reads a value so
    for (int i = 0; i < capacity; ++i) by_weight[i] = by_image[i] = -1;
    for (int i = 0; i < g.node_count; ++i)
      if (convolving_of(g, g.nodes[i]) == convolving::forward && is_forward(i)) {
        by_weight[g.nodes[i].in[1]] = i;
        by_image[g.nodes[i].in[0]] = i;
      }
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      if (is_leaf(n.op) || is_forward(i)) continue;
      int forward = -1, other = -1;
      for (int k = 0; k < n.inputs; ++k) {
        const int x = n.in[k], p = of[x];
        int& most = is_forward(x) ? forward : other;
        most = p > most ? p : most;
      }
      of[i] = forward >= 0 ? forward : other >= 0 ? other : count - 1;
      const convolving what = convolving_of(g, n);
      if (what == convolving::dx && by_weight[n.in[1]] >= 0) of[i] = of[by_weight[n.in[1]]];
      if (what == convolving::dw && by_image[n.in[1]] >= 0) of[i] = of[by_image[n.in[1]]];
    }
  }
};

// What is decided of each part of a graph.
template <int Nodes>
struct layout_choice {
  subgraph_map<Nodes> parts;
  bool chosen[subgraph_map<Nodes>::capacity];  // by part
  bool any;

  // Under layout_mode::automatic the parts whose times are worth estimating: settle has the last word.
  template <layout_mode Mode, class Splitter, class Graph>
  constexpr void find(const Graph& g, convolution_kernels kernels = linked_convolutions) {
    any = false;
    parts.clear();
    for (bool& c : chosen) c = false;
    if (Mode == layout_mode::off || g.custom_count == 0) return;  // no convolution
    parts.template find<Splitter>(g);
    for (int p = 0; p < parts.count; ++p) {
      const layout_decision d = decide_layout(Mode, layout_facts_of(g, parts.of, p, kernels));
      chosen[p] = d.channels_last || d.why == layout_reason::no_gain;
      any = any || chosen[p];
    }
  }
  // `from` without the parts that would gain nothing.
  template <class Times>
  constexpr void settle(const layout_choice& from, const Times& times) {
    any = false;
    parts.count = from.parts.count;
    for (int i = 0; i < parts.capacity; ++i) {
      parts.of[i] = from.parts.of[i];
      chosen[i] = false;
    }
    for (int p = 0; p < parts.count; ++p) {
      chosen[p] = from.chosen[p] && times.gains(p);
      any = any || chosen[p];
    }
  }
};

}  // namespace passes

}  // namespace shardwise::inline v0_1
