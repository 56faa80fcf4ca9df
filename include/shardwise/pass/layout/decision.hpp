// SPDX-License-Identifier: Apache-2.0
// decide_layout: whether a graph's convolutions are to be computed channels-last, by the rule of torch.compile.
#pragma once

#include <shardwise/graph/functions/convolution.hpp>
#include <shardwise/pass/analysis/phases.hpp>

namespace shardwise::inline v0_1 {

enum class layout_mode : std::uint8_t { off, automatic, force };

// What the rule asks of one convolution: the channels of its weight, those read for one group, rows of its kernel, and its work.
struct convolution_shape {
  std::int64_t outputs = 0, inputs = 0, rows = 1;
  std::int32_t groups = 1;
  double flops = 0;

  // Of a depthwise one every group reads one channel, which makes it none of these.
  constexpr bool is_grouped() const { return groups > 1 && inputs > 1; }
  constexpr bool is_small() const { return outputs <= 64 && inputs <= 64; }
  constexpr bool narrows() const { return outputs * 2 <= inputs && rows > 1; }
};

// Measured by torch.compile's authors: the time of such convolutions channels-last, of that contiguous.
namespace layout_factor {
inline constexpr double grouped = 1.358, small = 0.783, narrowing = 0.725, other = 0.823;
}

// What the rule asks of a graph.
struct layout_facts {
  int nodes = 0, convolutions = 0;
  bool library = false;   // a library of convolutions for processors computes all of it, one that is faster channels-last
  bool run_time = false;  // a convolution's operand has a run-time extent
  bool training = false;  // gradients of convolutions are computed
  bool any_grouped = false, any_narrows = false, all_small = true;
  double flops = 0, weighted = 0;  // of all convolutions; each multiplied by the factor of the first kind that it is of

  constexpr void add(const convolution_shape& c) {
    ++convolutions;
    any_grouped = any_grouped || c.is_grouped();
    any_narrows = any_narrows || c.narrows();
    all_small = all_small && c.is_small();
    flops += c.flops;
    weighted += c.flops * (c.is_grouped() ? layout_factor::grouped
                           : c.is_small() ? layout_factor::small
                           : c.narrows()  ? layout_factor::narrowing
                                          : layout_factor::other);
  }
};

// The first of these that is met, in this order, decides.
enum class layout_reason : std::uint8_t {
  off,
  forced,
  no_convolution,
  library,
  many_nodes,  // at least 300 for each convolution: most of the time goes elsewhere
  run_time_size,
  inference,  // by the work, in time contiguous and channels-last
  grouped,    // and these of a graph that is trained
  narrowing,
  all_small,
  training
};
struct layout_decision {
  bool channels_last = false;
  layout_reason why{};
  constexpr bool operator==(const layout_decision&) const = default;
};

constexpr layout_decision decide_layout(layout_mode mode, const layout_facts& f) {
  if (mode == layout_mode::off) return {false, layout_reason::off};
  if (mode == layout_mode::force) return {true, layout_reason::forced};
  if (f.convolutions == 0) return {false, layout_reason::no_convolution};
  if (f.library) return {true, layout_reason::library};
  if (f.nodes >= 300 * f.convolutions) return {false, layout_reason::many_nodes};
  if (f.run_time) return {false, layout_reason::run_time_size};
  if (!f.training) return {f.weighted <= f.flops, layout_reason::inference};
  if (f.any_grouped) return {false, layout_reason::grouped};
  if (f.any_narrows) return {false, layout_reason::narrowing};
  if (f.all_small) return {false, layout_reason::all_small};
  return {true, layout_reason::training};
}

namespace passes {

enum class convolving : std::uint8_t { none, forward, dx, dw };

// Which of the three convolutions a node is.
template <class Graph>
constexpr convolving convolving_of(const Graph& g, const node& n) {
  if (!is_custom(g, n)) return convolving::none;
  const custom_operation* const o = custom_of(g, n);
  return is_same_operation(o, &custom::conv2d)      ? convolving::forward
         : is_same_operation(o, &custom::conv2d_dx) ? convolving::dx
         : is_same_operation(o, &custom::conv2d_dw) ? convolving::dw
                                                    : convolving::none;
}

// Of nodes in part `part` (`of` says each node's; null: of all nodes), and of whole tensors, so that all ranks decide alike. Where
// torch.compile decides it has the forward pass alone: adjoints say that a graph is trained, and are not counted.
template <class Graph>
constexpr layout_facts layout_facts_of(const Graph& g, const int* of = nullptr, int part = 0) {
  layout_facts f;
  for (int i = 0; i < g.node_count && g.custom_count > 0; ++i) {
    const node& n = g.nodes[i];
    const convolving what = convolving_of(g, n);
    if (what == convolving::none || (of && of[i] != part)) continue;
    for (int k = 0; k < n.inputs; ++k) f.run_time = f.run_time || g.spec_of(n.in[k]).dyn != 0;
    if (what != convolving::forward) {
      f.training = true;
      continue;
    }
    const spec& w = g.spec_of(n.in[1]);
    const double window = static_cast<double>(w.extent[1]) * static_cast<double>(w.extent[2] * w.extent[3]);
    f.add({w.extent[0], w.extent[1], w.extent[2], attributes_of<convolution_attributes>(n.a).groups,
           2.0 * static_cast<double>(numel(g.specs[n.spec])) * window});
  }
  if (f.convolutions == 0) return f;
  phase_marks<Graph::node_capacity> phase;
  if (f.training) mark_phases(phase, g);
  for (int i = 0; i < g.node_count; ++i)
    if ((!f.training || phase.of(i) == program_phase::forward) && (!of || of[i] == part)) ++f.nodes;
  return f;
}

}  // namespace passes

}  // namespace shardwise::inline v0_1
