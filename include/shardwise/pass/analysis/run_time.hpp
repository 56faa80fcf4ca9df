// SPDX-License-Identifier: Apache-2.0
// run_time: what the nodes of a program take, estimated: collectives by DTensor's cost model, the others by their
// operations and bytes.
#pragma once

#include <shardwise/graph/batches.hpp>
#include <shardwise/graph/waits.hpp>
#include <shardwise/propagation/cost.hpp>

namespace shardwise::inline v0_1 {

// Floating-point operations of node i on the ranks at coordinate 0, as its record counts them.
template <class Graph>
constexpr double flops_of(const Graph& g, int i) {
  const node& n = g.nodes[i];
  const spec* in[max_inputs]{};
  for (int k = 0; k < n.inputs; ++k) in[k] = &g.specs[g.nodes[n.in[k]].spec];
  return record_of(g, n).flops.value(n.a, in, g.specs[n.spec]);
}

// That the node's kernel reads and writes.
template <class Graph>
constexpr double bytes_of(const Graph& g, int i) {
  constexpr int origin[max_axes]{};
  const node& n = g.nodes[i];
  const auto of = [&](int id) {
    const spec& s = g.spec_of(id);
    return static_cast<double>(local_numel(s, origin)) * static_cast<double>(size_of(s.type));
  };
  double total = of(i);
  for (int k = 1; k < result_count(g, n); ++k)
    if (const int item = item_of(g, i, k, g.node_count); item >= 0) total += of(item);
  for (int k = 0; k < n.inputs; ++k) total += of(n.in[k]);
  return total;
}

// A model is a type with `static constexpr double microseconds(graph, node id)`. This one: a device with so many gigaflop
// and gigabyte a second (by default an A100 in float, by its data sheet), whichever takes longer.
template <std::int64_t Gigaflops = 19'500, std::int64_t Gigabytes = 1'555>
struct run_time {
  template <class Graph>
  static constexpr double microseconds(const Graph& g, int i) {
    const node& n = g.nodes[i];
    if (!is_collective(g, i)) return compute(g, i);
    const double whole = redistribution_cost(g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec]);
    return joins_batch(g, i) ? whole - latency(g, n) : whole;  // a batch starts once
  }
  // What the collective n takes however few elements it moves.
  template <class Graph>
  static constexpr double latency(const Graph& g, const node& n) {
    spec from = g.specs[g.nodes[n.in[0]].spec], to = g.specs[n.spec];
    from.rank = to.rank = 1;
    from.extent[0] = to.extent[0] = 0;
    return redistribution_cost(from, to);
  }
  template <class Graph>
  static constexpr double compute(const Graph& g, int i) {
    const node& n = g.nodes[i];
    if (!runs_kernel(n.op) ||
        (n.inputs > 0 && may_view(n.op) && is_view(n, g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec])))
      return 0;
    const double work = flops_of(g, i) / (static_cast<double>(Gigaflops) * 1e3);
    const double traffic = bytes_of(g, i) / (static_cast<double>(Gigabytes) * 1e3);
    return work > traffic ? work : traffic;
  }
};

}  // namespace shardwise::inline v0_1
