// SPDX-License-Identifier: Apache-2.0
// run_time: what the nodes of a program take, estimated: collectives by DTensor's cost model, the others by their
// operations and bytes.
#pragma once

#include <shardwise/graph/waits.hpp>
#include <shardwise/propagation/cost.hpp>

namespace shardwise {

// Floating-point operations of node i on the ranks at coordinate 0: of products 2 for each multiplication, of the others
// 1 for each element of the result.
template <class Graph>
constexpr double flops_of(const Graph& g, int i) {
  constexpr int origin[max_axes]{};
  const node& n = g.nodes[i];
  const spec& out = g.specs[n.spec];
  if (n.op != op_code::einsum) return static_cast<double>(local_numel(out, origin));
  std::int64_t extent[16]{};  // by label
  for (int k = 0; k < 2; ++k) {
    const spec& x = g.specs[g.nodes[n.in[k]].spec];
    for (int d = 0; d < x.rank; ++d) extent[(n.a.v[k] >> (4 * d)) & 15] = local_interval(x, d, origin).size;
  }
  double flops = 2;
  for (const std::int64_t e : extent) flops *= e > 0 ? static_cast<double>(e) : 1;
  return flops;
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
    if (is_collective(g, i))
      return redistribution_cost(g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec]);
    return compute(g, i);
  }
  template <class Graph>
  static constexpr double compute(const Graph& g, int i) {
    const node& n = g.nodes[i];
    if (!runs_kernel(n.op) || (n.inputs > 0 && may_view(n.op) && is_view(n, g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec])))
      return 0;
    const double work = flops_of(g, i) / (static_cast<double>(Gigaflops) * 1e3);
    const double traffic = bytes_of(g, i) / (static_cast<double>(Gigabytes) * 1e3);
    return work > traffic ? work : traffic;
  }
};

}  // namespace shardwise
