// SPDX-License-Identifier: Apache-2.0
// host_backend: how much scratch a program's kernels and collectives need on the host; free of kernels, so that a program is
// planned without them.
#pragma once

#include <shardwise/graph/waits.hpp>
#include <shardwise/pass/memory/memory.hpp>
#include <shardwise/pass/memory/scratch.hpp>

namespace shardwise::inline v0_1 {

struct host_backend {
  static constexpr bool calls_host_functions = true;  // opaque ones

  // Largest scratch of any node on the ranks at coordinate 0: what kernels' records say, inboxes of reductions.
  template <class Source>
  static constexpr std::int64_t workspace_bytes() {
    const std::int64_t beside = stream_workspace(Source::value);
    const std::int64_t most = largest_workspace(Source::value);
    return beside > 0 ? passes::align_up(most) + beside : most;
  }
  // Of the collectives that run beside kernels: theirs lies behind the kernels' scratch.
  template <class Graph>
  static constexpr std::int64_t stream_workspace(const Graph& g) {
    std::int64_t most = 0;
    for (int i = 0; i < g.node_count; ++i) {
      if (g.nodes[i].op != op_code::wait) continue;
      const int c = collective_of(g, i);
      if (c < 0) continue;
      each_member(g, c, [&](int j) {
        const node& n = g.nodes[j];
        const std::int64_t need = collective_workspace(n.a, g.specs[g.nodes[n.in[0]].spec], g.specs[n.spec]);
        if (need > most) most = need;
      });
    }
    return most;
  }
  template <class Graph>
  static constexpr std::int64_t largest_workspace(const Graph& g) {
    std::int64_t most = passes::kernel_scratch<passes::kernel_place::host>(g);
    struct redistribution {
      int x = -1, out = -1, axis = -1;
      constexpr bool operator==(const redistribution&) const = default;
    };
    redistribution known[64];  // by hash, that counted last: layers repeat
    const int count = g.node_count;
    for (int i = 0; i < count; ++i) {
      const node& n = g.nodes[i];
      if (n.op != op_code::redistribute) continue;
      const int x = g.nodes[n.in[0]].spec, axis = static_cast<int>(attributes_of<redistribute_attributes>(n.a).axis);
      redistribution& before = known[static_cast<unsigned>(x * 31 + n.spec * 7 + axis) & 63U];
      if (before == redistribution{x, n.spec, axis}) continue;
      before = {x, n.spec, axis};
      const std::int64_t need = collective_workspace(n.a, g.specs[x], g.specs[n.spec]);
      if (need > most) most = need;
    }
    return most;
  }

  // Inboxes of a redistribution's collective, equal on all ranks since peers write into them.
  static constexpr std::int64_t collective_workspace(const op_attr& a, const spec& x, const spec& out) {
    const int axis = static_cast<int>(attributes_of<redistribute_attributes>(a).axis);
    const int ranks = x.axis_size[axis];
    const transition moved = transition_of(x.place[axis], out.place[axis], ranks);
    if (moved != transition::all_reduce && moved != transition::reduce_scatter) return 0;  // written where it is wanted
    constexpr int origin[max_axes]{};
    const std::int64_t size = static_cast<std::int64_t>(size_of(x.type)), elements = local_numel(x, origin);
    if (moved == transition::all_reduce) return ranks * ceil_div(elements, ranks) * size;
    const int d = out.place[axis].dim;
    const std::int64_t extent = local_interval(x, d, origin).size;
    return extent == 0 ? 0 : elements * size / extent * chunk_size(extent, out.place[axis].block, ranks) * ranks;
  }
};

}  // namespace shardwise::inline v0_1
