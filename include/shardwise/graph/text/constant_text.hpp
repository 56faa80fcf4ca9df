// SPDX-License-Identifier: Apache-2.0
// program_text: a graph's text as a constant, exactly as long as it is, so that a static_assert can speak of it.
#pragma once

#include <shardwise/graph/stage.hpp>
#include <shardwise/graph/text/text.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

template <text_format Format, int Capacity>
struct write_text {
  template <int Nodes>
  struct progress {
    text_buffer<Capacity> out{};
    name_counter names{};
    int number[Nodes]{};
    int cursor = 0;
    bool done = false;
  };

  // A line costs some 500 steps of evaluation.
  static constexpr int per_stage(int nodes) { return nodes / 4 > 0 ? nodes / 4 : 1; }
  template <class Source>
  static constexpr int stages(int nodes) {
    return graph_type_of<Source>::node_capacity / per_stage(nodes) + 1;
  }
  template <class Source>
  using state = progress<graph_type_of<Source>::node_capacity>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    text::put_head(st.out, Format);
  }
  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    if (st.done) return;
    const auto g = Source::value;
    const int left = g.node_count - st.cursor, end = left > per_stage(nodes) ? st.cursor + per_stage(nodes) : g.node_count;
    for (int i = st.cursor; i < end; ++i) {
      st.number[i] = st.names.next(g, i);
      text::put_node(st.out, Format, g, i, st.number);
    }
    st.cursor = end;
    if (end < g.node_count) return;
    text::put_tail(st.out, Format, g, st.number);
    st.done = true;
  }
};

}  // namespace passes

template <class Source, text_format Format = text_format::program, int Nodes = stage_nodes>
struct program_text {
  static constexpr int size = staged<passes::write_text<Format, 0>, Source, Nodes>::value.out.count;
  static constexpr const auto& value = staged<passes::write_text<Format, size>, Source, Nodes>::value.out;
};

}  // namespace shardwise::inline v0_1
