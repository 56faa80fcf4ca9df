// SPDX-License-Identifier: Apache-2.0
// layout_plan: what of a graph is stored channels-last, and where that asks for copies.
#pragma once

#include <shardwise/pass/layout/preferred.hpp>

namespace shardwise::inline v0_1 {

// Whether parameters that a program never writes, its frozen weights, are stored channels-last themselves instead of copied in each run.
enum class weight_storage : std::uint8_t { as_declared, frozen };

namespace passes {

// What readers ask of each value of four dims, bit by bit.
template <int Nodes>
struct layout_needs {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  static constexpr unsigned char wanted = 1, strict = 2, kernel = 4;
  unsigned char of[capacity];  // read by its strides; to be stored as recorded; read by a convolution as its weight

  template <class Graph>
  constexpr void find(const Graph& g, const layout_choice<Nodes>& choice, const preferred_nodes<Nodes>& preferred) {
    for (unsigned char& o : of) o = 0;
    if (!choice.any) return;
    for (int k = 0; k < g.output_count; ++k) of[g.outputs[k]] = strict;
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      for (int k = 0; k < n.inputs; ++k) {
        const int x = n.in[k];
        if (g.specs[g.nodes[x].spec].rank != 4) continue;
        const layout_need need = choice.parts.is_boundary(g, x, i) ? layout_need::strict : layout_need_of(g, i, k);
        if (need == layout_need::any) of[x] |= wanted;
        else if (need == layout_need::strict || g.nodes[x].op == op_code::param) of[x] |= strict;
      }
      if (!preferred.is[i]) continue;
      const convolving what = convolving_of(g, n);
      if (what == convolving::forward || what == convolving::dx) of[n.in[1]] |= kernel;
    }
  }
};

// What an operand is copied into before it is read; none: it is read as it is stored.
enum class layout_copy : std::uint8_t { none, channels_last, contiguous };

// What becomes of each node.
template <int Nodes>
struct layout_plan {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  bool last[capacity];       // stored channels-last, or was already
  bool convolves[capacity];  // reads all that it reads channels-last

  template <class Graph>
  constexpr void find(const Graph& g, const preferred_nodes<Nodes>& preferred, const layout_needs<Nodes>& needs,
                      weight_storage weights) {
    using bits = layout_needs<Nodes>;
    for (int i = 0; i < capacity; ++i) last[i] = convolves[i] = false;
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      const spec& s = g.specs[n.spec];
      if (s.rank != 4) continue;
      const convolving what = preferred.is[i] && unit_of(g, i) < 0 ? convolving_of(g, n) : convolving::none;
      convolves[i] = what != convolving::none;
      if (!is_contiguous(s)) {
        last[i] = is_channels_last(s);
        continue;
      }
      if ((needs.of[i] & (bits::wanted | bits::strict)) != bits::wanted) continue;
      if (n.op == op_code::param) last[i] = weights == weight_storage::frozen && (needs.of[i] & bits::kernel) != 0;
      else
        last[i] = preferred.is[i] && n.inputs > 0 && n.expression < 0 && may_be_strided(g, n) &&
                  n.op != op_code::contiguous && what != convolving::dw && unit_of(g, i) < 0;
    }
  }
  // Of value x: stored otherwise than it was traced.
  template <class Graph>
  constexpr bool is_turned(const Graph& g, int x) const {
    return last[x] && !is_channels_last(g.spec_of(x));
  }
  // Of operand k of node i. A value has one copy, whoever reads it.
  template <class Graph>
  constexpr layout_copy copy_of(const Graph& g, int i, int k) const {
    const int x = g.nodes[i].in[k];
    if (convolves[i] && !last[x]) return layout_copy::channels_last;
    return is_turned(g, x) && layout_need_of(g, i, k) != layout_need::any ? layout_copy::contiguous : layout_copy::none;
  }
};

}  // namespace passes

}  // namespace shardwise::inline v0_1
