// SPDX-License-Identifier: Apache-2.0
// What a program with elements of two bytes is asked: over how many ranks they are summed, and whether the loss is scaled.
#pragma once

#include <shardwise/graph/verify/located.hpp>
#include <shardwise/module/plan.hpp>

namespace shardwise::inline v0_1::detail {

// Whether node i sums elements of two bytes over ranks. A largest or a smallest element is none the worse for them.
template <class Graph>
constexpr bool is_low_sum(const Graph& g, int i) {
  const transition t = transition_at(g, i);
  if (t != transition::all_reduce && t != transition::reduce_scatter) return false;
  const node& n = g.nodes[i];
  const spec& from = g.specs[g.nodes[n.in[0]].spec];
  const reduction op = from.place[attributes_of<redistribute_attributes>(n.a).axis].op;
  return is_low_precision(from.type) && op != reduction::max && op != reduction::min;
}
// Over how many ranks the elements that node i gives have been summed: one axis after another multiplies them, as long as what
// stands between is linear in its one operand and of two bytes.
template <class Graph>
constexpr int ranks_of_sum(const Graph& g, int i) {
  int ranks = 1;
  for (int k = i; is_low_precision(g.specs[g.nodes[k].spec].type); k = g.nodes[k].in[0]) {
    const node& n = g.nodes[k];
    if (is_low_sum(g, k)) ranks *= g.specs[n.spec].axis_size[attributes_of<redistribute_attributes>(n.a).axis];
    if (n.inputs != 1 || record_of(g, n).linear.value(n.a, 1) == linearity::none) break;
  }
  return ranks;
}

// That no such sum of Source's graph goes over more than Bound ranks. A program that has no such elements pays for a look at its specs.
template <class Source, int Bound, class Mesh, bool Any = has_low_precision(Source::value)>
struct low_sums_within {
  static constexpr bool ok = true;
};
template <class Source, int Bound, class Mesh>
struct low_sums_within<Source, Bound, Mesh, true> {
  static constexpr int node = [] {
    for (int i = 0; i < Source::value.node_count; ++i)
      if (is_low_sum(Source::value, i) && ranks_of_sum(Source::value, i) > Bound) return i;
    return -1;
  }();
  static constexpr problem what = node < 0 ? problem::none : problem::low_precision_sum;
  static constexpr bool ok =
      refused_at<what, (node < 0 ? 0 : ranks_of_sum(Source::value, node < 0 ? 0 : node)), Bound, Source, node, Mesh>::ok;
};

// That a trace which is differentiated computes in f16 under a plan that says what its loss is scaled by.
template <class Trace, class Plan, bool Any = has_low_precision(Trace::value) && loss_scale_of<Plan> == 0>
struct loss_is_scaled {
  static constexpr bool ok = true;
};
template <class Trace, class Plan>
struct loss_is_scaled<Trace, Plan, true> {
  static constexpr int node = [] {
    for (int i = 0; i < Trace::value.node_count; ++i)
      if (Trace::value.specs[Trace::value.nodes[i].spec].type == dtype::f16) return i;
    return -1;
  }();
  static constexpr bool ok = raise_at<(node < 0 ? problem::none : problem::loss_scale_missing), Trace, node>::ok;
};

}  // namespace shardwise::inline v0_1::detail
