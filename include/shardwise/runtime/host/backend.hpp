// SPDX-License-Identifier: Apache-2.0
// host_backend: how much scratch a program's kernels and collectives need on the host; free of kernels, so that a program is
// planned without them.
#pragma once

#include <shardwise/graph/waits.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/propagation/contraction.hpp>
#include <shardwise/runtime/host/gemm.hpp>
#include <shardwise/support/config.hpp>

namespace shardwise::inline v0_1 {

namespace host {
inline namespace SHARDWISE_HOST_BUILD {

// Scratch that an einsum of these local extents needs at most; gemm's own bound is monotone in its three sizes.
template <class T>
constexpr std::size_t einsum_workspace(const op_attr& a, const spec& x, const spec& y, const std::int64_t* ex,
                                       const std::int64_t* ey) {
  std::int64_t m = 1, n = 1, k = 1;
  const auto of = attributes_of<einsum_attributes>(a);
  for (int d = 0; d < x.rank; ++d) {
    const int l = rules::label(of.lhs, d);
    const bool in_y = rules::find_label(of.rhs, y.rank, l) >= 0;
    const bool in_out = rules::find_label(of.out, max_rank, l) >= 0;
    if (!in_y) m *= ex[d];
    else if (!in_out) k *= ex[d];
  }
  for (int d = 0; d < y.rank; ++d)
    if (rules::find_label(of.lhs, x.rank, rules::label(of.rhs, d)) < 0) n *= ey[d];
  const std::size_t straight = gemm_workspace_bytes<T>(m, n, k), turned = gemm_workspace_bytes<T>(n, m, k);
  return straight > turned ? straight : turned;
}

}  // namespace SHARDWISE_HOST_BUILD
}  // namespace host

struct host_backend {
  // Largest scratch of any node on the ranks at coordinate 0: packed matrix panels, inboxes of reductions.
  template <class Source>
  static constexpr std::int64_t workspace_bytes() {
    const std::int64_t beside = stream_workspace(Source::value);
    const std::int64_t most = largest_workspace(Source::value);
    return beside > 0 ? passes::align_up(most) + beside : most;
  }
  // Of the collectives that run beside kernels: theirs lies behind the kernels' scratch.
  template <class Graph>
  static constexpr std::int64_t stream_workspace(const Graph& g) {
    constexpr int origin[max_axes]{};
    std::int64_t most = 0;
    for (int i = 0; i < g.node_count; ++i) {
      if (g.nodes[i].op != op_code::wait) continue;
      const int c = collective_of(g, i);
      if (c < 0) continue;
      const node& n = g.nodes[c];
      const spec& x = g.specs[g.nodes[n.in[0]].spec];
      std::int64_t ext[max_rank]{};
      for (int d = 0; d < x.rank; ++d) ext[d] = local_interval(x, d, origin).size;
      const std::int64_t need = workspace_of(n, x, x, g.specs[n.spec], ext, ext);
      if (need > most) most = need;
    }
    return most;
  }
  template <class Graph>
  static constexpr std::int64_t largest_workspace(const Graph& g) {
    const int specs = g.spec_count;
    std::int64_t ext[Graph::spec_capacity][max_rank]{};
    constexpr int origin[max_axes]{};
    for (int s = 0; s < specs; ++s)
      for (int d = 0; d < g.specs[s].rank; ++d) ext[s][d] = local_interval(g.specs[s], d, origin).size;
    std::int64_t most = 0;
    // equal applications need equal scratch, and layers repeat: the last node computed for each key is remembered
    struct application {
      op_code op;
      int x, y, out;
      std::int64_t v[3];
    };
    application known[128];
    for (application& k : known) k.out = -1;
    const int count = g.node_count;
    for (int i = 0; i < count; ++i) {
      const op_code op = g.nodes[i].op;
      if (op != op_code::einsum && op != op_code::redistribute && op != op_code::scatter_dsrc) continue;
      const node n = g.nodes[i];
      const int x = g.nodes[n.in[0]].spec, y = g.nodes[n.in[op == op_code::einsum ? 1 : 0]].spec;
      application& before = known[static_cast<unsigned>(x * 31 + y * 7 + n.spec + static_cast<int>(n.a.v[0])) & 127U];
      if (before.out == n.spec && before.op == op && before.x == x && before.y == y && before.v[0] == n.a.v[0] &&
          before.v[1] == n.a.v[1] && before.v[2] == n.a.v[2])
        continue;
      before = {op, x, y, n.spec, {n.a.v[0], n.a.v[1], n.a.v[2]}};
      const std::int64_t need = workspace_of(n, g.specs[x], g.specs[y], g.specs[n.spec], ext[x], ext[y]);
      if (need > most) most = need;
    }
    return most;
  }

  static constexpr std::int64_t workspace_of(const node& n, const spec& x, const spec& y, const spec& out,
                                             const std::int64_t* ex, const std::int64_t* ey) {
    if (n.op == op_code::einsum)
      return static_cast<std::int64_t>(x.type == dtype::f64 ? host::einsum_workspace<double>(n.a, x, y, ex, ey)
                                                            : host::einsum_workspace<float>(n.a, x, y, ex, ey));
    if (n.op == op_code::scatter_dsrc)  // the last writer of each place of a line
      return (ex[attributes_of<index_attributes>(n.a).dim] + 1) * static_cast<std::int64_t>(sizeof(std::int32_t));
    const int axis = static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis);
    const int ranks = x.axis_size[axis];
    std::int64_t total = static_cast<std::int64_t>(size_of(x.type));
    for (int d = 0; d < x.rank; ++d) total *= ex[d];
    switch (transition_of(x.place[axis], out.place[axis], ranks)) {
      case transition::all_reduce:
        return ranks * ceil_div(total / static_cast<std::int64_t>(size_of(x.type)), ranks) *
               static_cast<std::int64_t>(size_of(x.type));
      case transition::reduce_scatter: {
        const int d = out.place[axis].dim;
        return ex[d] == 0 ? 0 : total / ex[d] * chunk_size(ex[d], out.place[axis].block, ranks) * ranks;
      }
      case transition::all_gather:  // written where it is wanted
      case transition::all_to_all:
      case transition::none:
      case transition::take_chunk:
      case transition::to_partial:
      case transition::place_chunk: break;
    }
    return 0;
  }
};

}  // namespace shardwise::inline v0_1
