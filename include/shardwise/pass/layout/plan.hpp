// SPDX-License-Identifier: Apache-2.0
// layout_plan: what of a graph is stored channels-last, and where that asks for copies.
#pragma once

#include <shardwise/pass/layout/preferred.hpp>

namespace shardwise::inline v0_1 {

// Whether parameters that a program never writes, its frozen weights, are stored channels-last themselves instead of copied in each run.
enum class weight_storage : std::uint8_t { as_declared, frozen };

namespace passes {

// What an operand is copied into before it is read; none: it is read as it is stored.
enum class layout_copy : std::uint8_t { none, channels_last, contiguous };

// What becomes of each node.
template <int Nodes>
struct layout_plan {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  bool last[capacity];       // stored channels-last, or was already
  bool convolves[capacity];  // reads all that it reads channels-last

  // From the last node to the first, so that all readers of a value come before it.
  template <class Graph>
  constexpr void find(const Graph& g, const layout_choice<Nodes>& choice, const preferred_nodes<Nodes>& preferred,
                      weight_storage weights) {
    unsigned char asked[capacity];  // of a value by its readers
    for (int i = 0; i < capacity; ++i) {
      last[i] = convolves[i] = false;
      asked[i] = 0;
    }
    for (int k = 0; k < g.output_count; ++k) asked[g.outputs[k]] = strict;
    for (int i = g.node_count - 1; i >= 0; --i) {
      const convolving what = preferred.is[i] ? convolving_of(g, g.nodes[i]) : convolving::none;
      convolves[i] = what != convolving::none && unit_of(g, i) < 0;
      last[i] = is_last(g, i, what, preferred.is[i], asked[i], weights);
      if (choice.any) ask(g, i, what, choice, asked);
    }
  }
  // Of value x: stored otherwise than it was traced.
  template <class Graph>
  constexpr bool is_turned(const Graph& g, int x) const {
    return last[x] && !is_channels_last(g.spec_of(x));
  }
  // Of operand k of node i. A value has one copy, whoever reads it. A function of elements reads what is as large as its result in the
  // result's order: what it loses across orders is up to five times what a copy takes.
  template <class Graph>
  constexpr layout_copy copy_of(const Graph& g, int i, int k) const {
    const int x = g.nodes[i].in[k];
    if (convolves[i] && !last[x]) return layout_copy::channels_last;
    if (is_turned(g, x) && layout_need_of(g, i, k) != layout_need::any) return layout_copy::contiguous;
    if (last[x] == last[i] || !is_pointwise_alike(g, i, x)) return layout_copy::none;
    return is_turned(g, x) ? layout_copy::contiguous : is_turned(g, i) ? layout_copy::channels_last : layout_copy::none;
  }

 private:
  // Read by its strides; to be stored as recorded; read by a convolution as its weight.
  static constexpr unsigned char wanted = 1, strict = 2, kernel = 4;

  template <class Graph>
  constexpr bool is_last(const Graph& g, int i, convolving what, bool preferred, unsigned char asked,
                         weight_storage weights) const {
    const node& n = g.nodes[i];
    const spec& s = g.specs[n.spec];
    if (s.rank != 4) return false;
    if (!is_contiguous(s)) return is_channels_last(s);
    if ((asked & (wanted | strict)) != wanted) return false;
    if (n.op == op_code::param) return weights == weight_storage::frozen && (asked & kernel) != 0;
    return preferred && n.inputs > 0 && n.expression < 0 && may_be_strided(g, n) && n.op != op_code::contiguous &&
           what != convolving::dw && unit_of(g, i) < 0;
  }
  template <class Graph>
  constexpr void ask(const Graph& g, int i, convolving what, const layout_choice<Nodes>& choice,
                     unsigned char* asked) const {
    const node& n = g.nodes[i];
    for (int k = 0; k < n.inputs; ++k) {
      const int x = n.in[k];
      if (g.specs[g.nodes[x].spec].rank != 4) continue;
      const layout_need need = choice.parts.is_boundary(g, x, i) ? layout_need::strict : layout_need_of(g, i, k);
      if (need == layout_need::any)
        asked[x] = static_cast<unsigned char>(asked[x] | (last[i] || !is_pointwise_alike(g, i, x) ? wanted : 0));
      else if (need == layout_need::strict || g.nodes[x].op == op_code::param) asked[x] |= strict;
    }
    if (what == convolving::forward || what == convolving::dx) asked[n.in[1]] |= kernel;
  }
  // Whether node i is a function of elements that has one of x for each of its own.
  template <class Graph>
  static constexpr bool is_pointwise_alike(const Graph& g, int i, int x) {
    const spec &result = g.specs[g.nodes[i].spec], &read = g.spec_of(x);
    return g.nodes[i].expression < 0 && record_of(g, g.nodes[i]).kind == operation_kind::pointwise && result.rank == 4 &&
           read.rank == 4 && numel(result) == numel(read);
  }
};

}  // namespace passes

}  // namespace shardwise::inline v0_1
