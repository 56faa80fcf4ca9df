// SPDX-License-Identifier: Apache-2.0
// eager_program: a program's nodes run one by one as eager operations: no arena, no plan, the same kernels.
#pragma once

#include <vector>

#include <shardwise/runtime/eager.hpp>
#include <shardwise/runtime/lowered.hpp>

namespace shardwise::runtime {

template <class Program>
struct program_tag {
  static constexpr const auto& value = program_source<Program>::program;
};

// A program on this rank: its nodes as applications, and room for their values while it runs.
template <class Program, class Rank>
struct prepared_program final : prepared {
  using graph_tag = program_tag<Program>;
  static constexpr const auto& g = graph_tag::value;
  static constexpr char key = 0;  // its address is the program's name in the core

  std::vector<eager_operation<Rank>> operation;
  std::vector<eager_value<Rank>> value;
  std::vector<int> dies;        // nodes in the order in which their values are last read
  std::vector<int> dies_begin;  // those whose last reader is node i: dies[dies_begin[i] .. dies_begin[i + 1])

  prepared_program() {
    const auto count = static_cast<std::size_t>(g.node_count);
    operation.resize(count);
    value.resize(count);
    std::vector<int> last(count, -1);
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      for (int k = 0; k < n.inputs; ++k) last[static_cast<std::size_t>(n.in[k])] = i;
      last[static_cast<std::size_t>(i)] = i;
      if (n.op != op_code::input) operation[static_cast<std::size_t>(i)] = application(i);
    }
    for (int k = 0; k < g.output_count; ++k) last[static_cast<std::size_t>(g.outputs[k])] = g.node_count;
    dies_begin.assign(count + 2, 0);
    for (const int l : last) ++dies_begin[static_cast<std::size_t>(l) + 1];
    for (std::size_t i = 0; i <= count; ++i) dies_begin[i + 1] += dies_begin[i];
    dies.resize(count);
    std::vector<int> at(dies_begin);
    for (std::size_t v = 0; v < count; ++v)
      dies[static_cast<std::size_t>(at[static_cast<std::size_t>(last[v])]++)] = static_cast<int>(v);
  }

  static eager_operation<Rank> application(int i) {
    const node& n = g.nodes[i];
    const spec& out = g.specs[n.spec];
    eager_operation<Rank> o{};
    o.op = n.op;
    o.a = n.a;
    o.out = &out;
    o.kernel = kernel_table<graph_tag, Rank>::of(i);
    if (n.inputs == 0) return o;
    const int x = g.nodes[n.in[0]].spec, y = g.nodes[n.in[n.inputs - 1]].spec;
    o.in = &g.specs[x];
    o.view = is_view(n, g.specs[x], out);
    o.workspace = o.view ? 0 : eager_workspace(n, g.specs[x], g.specs[y], out);
    o.signature = n.op == op_code::redistribute ? redistribution_signature(g.hashes[x], g.hashes[n.spec]) : 0;
    if (n.op == op_code::opaque) o.function = g.functions[n.a.v[0]];
    if (n.op == op_code::dropout) o.site = static_cast<std::int32_t>(n.a.v[0]);
    return o;
  }

  // Values go when the run ends, however it ends: they would keep the core alive.
  struct clear {
    prepared_program& p;
    ~clear() {
      for (eager_value<Rank>& v : p.value) v = eager_value<Rank>{};
    }
  };
};

// `in` are the program's inputs in order, `out` becomes its outputs. A value is given back to the pool after its last
// use. Collective where the program is.
template <class Program, class Rank>
void run_eagerly(const eager_value<Rank>* const* in, int inputs, eager_value<Rank>* out) {
  using program = prepared_program<Program, Rank>;
  const auto& g = program::g;
  eager_core<Rank>& core = in[0]->live();
  for (int k = 1; k < inputs; ++k)
    if (&in[k]->live() != &core) refuse_mixed_runs();
  auto* p = static_cast<program*>(core.find(&program::key));
  if (!p) p = &core.add(&program::key, new program);
  const typename program::clear at_end{*p};
  const std::int32_t first_site = core.site;
  core.site += g.sites;
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    const auto at = static_cast<std::size_t>(i);
    const eager_operation<Rank>& o = p->operation[at];
    if (n.op == op_code::input) {
      p->value[at] = *in[static_cast<std::size_t>(n.a.v[0])];
    } else if (n.inputs == 0) {  // a constant
      eager_value<Rank> v(core, *o.out);
      call c;
      c.f = n.f;
      c.l[result] = *v.layout;
      c.p[result] = v.data;
      o.kernel(c, core.env, *core.rank);
      p->value[at] = std::move(v);
    } else {
      const eager_value<Rank>* operands[max_inputs];
      for (int k = 0; k < n.inputs; ++k) operands[k] = &p->value[static_cast<std::size_t>(n.in[k])];
      p->value[at] = apply_eagerly<Rank>(o, n.f, operands, n.inputs, first_site);
    }
    for (int d = p->dies_begin[at]; d < p->dies_begin[at + 1]; ++d)
      p->value[static_cast<std::size_t>(p->dies[static_cast<std::size_t>(d)])] = eager_value<Rank>{};
  }
  for (int k = 0; k < g.output_count; ++k) out[k] = p->value[static_cast<std::size_t>(g.outputs[k])];
}

}  // namespace shardwise::runtime
