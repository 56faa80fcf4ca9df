// SPDX-License-Identifier: Apache-2.0
// What a program's memory is for: live bytes by kind where they are most, and the most of each phase, as constants.
#pragma once

#include <shardwise/graph/kept_gradients.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/pass/analysis/phases.hpp>

namespace shardwise::inline v0_1 {

enum class memory_kind : std::uint8_t {
  parameters,  // as they are stored, and as modules use them (mixed)
  buffers,     // of modules
  gradients,   // of parameters, unreduced or reduced, and sums of them
  optimizer,   // states and what updates are computed from
  inputs,
  activations,    // what the result depends on
  cotangents,     // what only gradients depend on
  communication,  // results of collectives, parameters' gradients excepted
  workspace,      // kernels' scratch
  count
};

inline constexpr int memory_kinds = static_cast<int>(memory_kind::count);

constexpr const char* name_of(memory_kind k) {
  constexpr const char* names[] = {"parameters",  "buffers",    "gradients",     "optimizer", "inputs",
                                   "activations", "cotangents", "communication", "workspace"};
  return k < memory_kind::count ? names[static_cast<int>(k)] : "?";
}

// In bytes of one rank's arena, buffers rounded up to their alignment. Laws: the kinds at the fullest node add up to the
// largest phase; the peak of the arena is that or, where free bytes lie between buffers, more.
struct memory_breakdown {
  std::int64_t kind[memory_kinds]{};     // at the fullest node
  std::int64_t phase[program_phases]{};  // the most while one of the phase's nodes runs; leaves and workspace included
  int fullest = -1;                      // node
  constexpr std::int64_t live() const {
    std::int64_t n = 0;
    for (std::int64_t k : kind) n += k;
    return n;
  }
};

namespace passes {

namespace detail {

template <int Nodes>
struct breakdown_state {
  memory_breakdown found;
  std::int64_t now[memory_kinds]{};
  phase_marks<Nodes> marks;
  item_lists<Nodes> items;
  unsigned char taken[Nodes]{};  // whether an owner's bytes are counted: a pack's are from its first operand on
  int cursor = 0;
};

}  // namespace detail

// Source: a program's graph; Memory: its planned_memory.
template <class Memory>
struct break_memory_down {
  template <class Source>
  using state = detail::breakdown_state<graph_type_of<Source>::node_capacity>;

  template <class Source>
  static constexpr int stages(int nodes) {
    return (Source::value.node_count + nodes - 1) / nodes;
  }

  template <class Source, class State>
  static constexpr void start(State& st) {
    st = State{};
    mark_phases(st.marks, Source::value);
    st.items.find(Source::value);
    persistent(st, Source::value, Memory::value);
  }

  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    follow(st, Source::value, Memory::value, nodes);
  }

 private:
  template <class State, class Graph>
  static constexpr memory_kind kind_of(const State& st, const Graph& g, int i) {
    const node& x = g.nodes[i];
    if (x.op == op_code::param || casts_parameter(x)) return memory_kind::parameters;
    if (x.op == op_code::module_buffer) return memory_kind::buffers;
    if (x.op == op_code::state) return keeps_gradient(x) ? memory_kind::gradients : memory_kind::optimizer;
    if (x.op == op_code::input) return memory_kind::inputs;
    if (st.marks.gradient[i]) return memory_kind::gradients;
    if (x.op == op_code::redistribute) {
      const int a = static_cast<int>(attributes_of<redistribute_attributes>(x.a).axis);
      const spec& from = g.specs[g.nodes[x.in[0]].spec];
      if (communicates(transition_of(from.place[a], g.specs[x.spec].place[a], from.axis_size[a])))
        return memory_kind::communication;
    }
    switch (st.marks.of(i)) {
      case program_phase::forward: return memory_kind::activations;
      case program_phase::optimizer: return memory_kind::optimizer;
      case program_phase::backward:
      case program_phase::count: break;
    }
    return memory_kind::cotangents;
  }

  template <class State, class Graph, class Plan>
  static constexpr void persistent(State& st, const Graph& g, const Plan& p) {
    st.now[static_cast<int>(memory_kind::workspace)] = p.workspace;
    for (int i = 0; i < g.node_count; ++i)
      if (is_leaf(g.nodes[i].op)) st.now[static_cast<int>(kind_of(st, g, i))] += align_up(p.bytes[i]);
  }

  template <class State, class Graph, class Plan>
  static constexpr void follow(State& st, const Graph& g, const Plan& p, int nodes) {
    const int end = st.cursor + nodes < g.node_count ? st.cursor + nodes : g.node_count;
    memory_breakdown& found = st.found;
    for (int i = st.cursor; i < end; ++i) {
      const node& x = g.nodes[i];
      if (is_leaf(x.op)) continue;
      // a buffer is of the kind that its owner is; packs of leaves are the leaves
      const int own = p.owner[i];
      const auto take = [&](int o) {
        if (st.taken[o] || is_leaf(g.nodes[o].op) || places_leaves(g.nodes[o])) return;
        st.taken[o] = 1;
        st.now[static_cast<int>(kind_of(st, g, o))] += align_up(p.bytes[o]);
      };
      const bool batched = x.op == op_code::redistribute && batch_number(x) != 0;
      if (batched) each_member(g, i, [&](int j) { take(p.owner[j]); });
      else take(own);
      for (int k = st.items.first[i]; k >= 0; k = st.items.next[k]) take(p.owner[k]);  // computed here
      std::int64_t live = 0;
      for (std::int64_t k : st.now) live += k;
      std::int64_t& most = found.phase[st.marks.phase[i]];
      if (live > most) most = live;
      if (found.fullest < 0 || live > found.live()) {
        found.fullest = i;
        for (int k = 0; k < memory_kinds; ++k) found.kind[k] = st.now[k];
      }
      auto release = [&](int o) {
        if (p.last_use[o] != i || !st.taken[o]) return;
        st.now[static_cast<int>(kind_of(st, g, o))] -= align_up(p.bytes[o]);
        st.taken[o] = 2;
      };
      if (batched && i + 1 == batch_end(g, i)) {
        each_operand_storage(g, p.owner, i, release);
        each_member(g, i, [&](int j) {
          if (p.owner[j] == j) release(j);
        });
      }
      for (int j = 0; j < x.inputs && !batched; ++j) {
        const int o = p.owner[x.in[j]];
        bool again = o == p.owner[i];
        for (int e = 0; e < j; ++e) again = again || p.owner[x.in[e]] == o;
        if (!again) release(o);
      }
      if (x.op == op_code::wait)  // until then the collective reads its operand
        if (const int c = collective_of(g, i); c >= 0)
          each_operand_storage(g, p.owner, c, [&](int o) {
            if (o != own) release(o);
          });
      if (own == i && !batched) release(i);
    }
    st.cursor = end;
  }
};

template <class Memory, class Source, int Nodes = stage_nodes>
struct memory_breakdown_of {
  static constexpr const memory_breakdown& value = staged<break_memory_down<Memory>, Source, Nodes>::value.found;
};

}  // namespace passes

}  // namespace shardwise::inline v0_1
