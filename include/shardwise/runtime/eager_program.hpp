// SPDX-License-Identifier: Apache-2.0
// eager_program: a program's nodes run one by one as eager operations: no arena, no plan, the same kernels.
#pragma once

#include <span>
#include <vector>

#include <shardwise/runtime/eager.hpp>
#include <shardwise/runtime/lowered.hpp>

namespace shardwise::runtime {

template <class Program>
struct program_tag {
  static constexpr const auto& value = program_source<Program>::program;
};

// The values of all nodes; `in` are the program's inputs, in order. Collective where the program is.
template <class Program, class Rank>
std::vector<eager_value<Rank>> run_eagerly(std::span<const eager_value<Rank>* const> in) {
  using graph_tag = program_tag<Program>;
  const auto& g = graph_tag::value;
  eager_core<Rank>& core = in[0]->live();
  const std::int32_t first_site = core.site;
  core.site += g.sites;
  if (core.env.random == random_policy::by_offset && core.site_offset.size() == static_cast<std::size_t>(first_site))
    core.next_offset = site_offsets(g, 0, core.next_offset, core.site_offset);
  std::vector<eager_value<Rank>> value(static_cast<std::size_t>(g.node_count));
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    const spec& out = g.specs[n.spec];
    eager_value<Rank>& v = value[static_cast<std::size_t>(i)];
    if (n.op == op_code::input) {
      v = *in[static_cast<std::size_t>(n.a.v[0])];
      if (&v.live() != &core)
        throw std::logic_error(
            "shardwise: the operands belong to different eager runs; make all tensors of a rank from one eager object");
      continue;
    }
    if (n.inputs == 0) {  // a constant
      const std::int32_t site = rules::is_random(n.op) ? first_site + static_cast<std::int32_t>(n.a.v[0]) : -1;
      v = fill_eagerly<Rank>(core, n.op, n.a, n.f, out, kernel_table<graph_tag, Rank>::of(i), site);
      continue;
    }
    const int x = g.nodes[n.in[0]].spec, y = g.nodes[n.in[n.inputs - 1]].spec;
    eager_operation<Rank> o{};
    o.op = n.op;
    o.a = n.a;
    o.in = &g.specs[x];
    o.out = &out;
    o.view = is_view(n, g.specs[x], out);
    o.workspace = o.view ? 0 : eager_workspace(n, g.specs[x], g.specs[y], out);
    o.signature = n.op == op_code::redistribute ? redistribution_signature(g.hashes[x], g.hashes[n.spec]) : 0;
    o.kernel = kernel_table<graph_tag, Rank>::of(i);
    if (n.op == op_code::opaque) o.function = g.functions[n.a.v[0]];
    if (rules::is_random(n.op)) o.site = first_site + static_cast<std::int32_t>(n.a.v[0]);
    const eager_value<Rank>* operands[max_inputs]{};
    for (int k = 0; k < n.inputs; ++k) operands[k] = &value[static_cast<std::size_t>(n.in[k])];
    v = apply_eagerly<Rank>(o, n.f, {operands, static_cast<std::size_t>(n.inputs)});
  }
  return value;
}

}  // namespace shardwise::runtime
