// SPDX-License-Identifier: Apache-2.0
// eager_program: a program's nodes run one by one as eager operations: no arena, no plan, the same kernels.
#pragma once

#include <cstring>
#include <vector>

#include <shardwise/runtime/eager/eager.hpp>
#include <shardwise/runtime/program/lowered_program.hpp>
#include <shardwise/runtime/program/observer.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::runtime {

template <class Program>
struct program_tag {
  static constexpr const auto& value = program_source<Program>::program;
};

// What a run of a program is for: the nodes that Program::results lists (-1: none of this index), or its outputs.
template <class Program>
struct program_results {
#if SHARDWISE_DEVICE_PASS
  static constexpr int count = 0, inputs = 0, parameters = 0, buffers = 0;
  static constexpr int node(int) { return -1; }
#else
  static constexpr bool listed = requires { Program::results; };
  static constexpr int count = [] {
    if constexpr (listed) return Program::result_count;
    else return Program::program.output_count;
  }();
  static constexpr int node(int k) {
    if constexpr (listed) return Program::results[k];
    else return Program::program.outputs[k];
  }
  // Operands are the inputs, then the parameters, the buffers and the optimizer's states.
  static constexpr int inputs = [] {
    if constexpr (requires { Program::input_count; }) return Program::input_count;
    else return 0;
  }();
  static constexpr int parameters = [] {
    if constexpr (requires { Program::parameter_total; }) return Program::parameter_total;
    else return 0;
  }();
  static constexpr int buffers = [] {
    if constexpr (requires { Program::buffer_total; }) return Program::buffer_total;
    else return 0;
  }();
#endif
};

// What a run reads of a program, of one type for all programs.
template <class Rank>
struct eager_program {
  const void* key;  // its name in the core
  graph_view g;
  const std::uint64_t* hashes;  // of the specs
  kernel_function<Rank> (*kernel_of)(int node);
  const int* results;  // nodes; -1: none of this index
  int result_count, inputs, parameters, buffers;
};
template <class Program, class Rank>
struct eager_program_of {
  using results = program_results<Program>;
  static constexpr char key = 0;
  struct nodes {
    int of[results::count > 0 ? results::count : 1]{};
  };
  static constexpr nodes result = [] {
    nodes r;
    for (int k = 0; k < results::count; ++k) r.of[k] = results::node(k);
    return r;
  }();
  static constexpr const auto& graph = program_tag<Program>::value;
  static constexpr eager_program<Rank> value{.key = &key,
                                             .g = view_of(graph),
                                             .hashes = graph.hashes,
                                             .kernel_of = kernel_table<program_tag<Program>, Rank>::of,
                                             .results = result.of,
                                             .result_count = results::count,
                                             .inputs = results::inputs,
                                             .parameters = results::parameters,
                                             .buffers = results::buffers};
};

// A program on this rank: its nodes as applications, and room for their values while it runs.
template <class Rank>
struct prepared_program final : prepared {
  std::vector<eager_operation<Rank>> operation;
  std::vector<eager_value<Rank>> value;
  dynamic_array<char> runs;       // whether a result or an update depends on the node
  dynamic_array<int> dies;        // nodes in the order in which their values are last read
  dynamic_array<int> dies_begin;  // those whose last reader is node i: dies[dies_begin[i] .. dies_begin[i + 1])

  explicit prepared_program(const eager_program<Rank>& of) {
    const graph_view& g = of.g;
    const auto count = static_cast<std::size_t>(g.node_count);
    operation.resize(count);
    value.resize(count);
    runs.assign(count, 0);
    for (int k = 0; k < of.result_count; ++k)
      if (of.results[k] >= 0) runs[static_cast<std::size_t>(of.results[k])] = 1;
    for (int i = g.node_count; i-- > 0;) {
      if (is_update(g.nodes[i].op)) runs[static_cast<std::size_t>(i)] = 1;
      if (runs[static_cast<std::size_t>(i)] != 0)
        for (int k = 0; k < g.nodes[i].inputs; ++k) runs[static_cast<std::size_t>(g.nodes[i].in[k])] = 1;
    }
    dynamic_array<int> last(count, -1);
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      last[static_cast<std::size_t>(i)] = i;
      if (runs[static_cast<std::size_t>(i)] == 0) continue;
      for (int k = 0; k < n.inputs; ++k) last[static_cast<std::size_t>(n.in[k])] = i;
      if (n.op == op_code::getitem)
        add_result(operation[static_cast<std::size_t>(n.in[0])], attributes_of<getitem_attributes>(n.a).result,
                   g.specs[n.spec]);
      else if (!is_leaf(n.op)) operation[static_cast<std::size_t>(i)] = application(of, i);
    }
    for (int k = 0; k < of.result_count; ++k)
      if (of.results[k] >= 0) last[static_cast<std::size_t>(of.results[k])] = g.node_count;
    dies_begin.assign(count + 2, 0);
    for (const int l : last) ++dies_begin[static_cast<std::size_t>(l) + 1];
    for (std::size_t i = 0; i <= count; ++i) dies_begin[i + 1] += dies_begin[i];
    dies.resize(count);
    dynamic_array<int> at(dies_begin);
    int v = 0;
    for (const int l : last) dies[static_cast<std::size_t>(at[static_cast<std::size_t>(l)]++)] = v++;
  }

  static void add_result(eager_operation<Rank>& of, std::int64_t number, const spec& out) {
    of.outs[number] = &out;
    of.workspace += widened_block::bytes(out);
  }
  static eager_operation<Rank> application(const eager_program<Rank>& of, int i) {
    const graph_view& g = of.g;
    const node& n = g.nodes[i];
    const spec& out = g.specs[n.spec];
    eager_operation<Rank> o{};
    o.op = n.op;
    o.a = n.a;
    o.out = &out;
    o.kernel = of.kernel_of(i);
    if (n.inputs == 0) return o;
    const int x = g.nodes[n.in[0]].spec;
    const spec* in[max_inputs]{};
    for (int k = 0; k < n.inputs; ++k) in[k] = &g.specs[g.nodes[n.in[k]].spec];
    o.in = &g.specs[x];
    o.view = is_view(n, g.specs[x], out);
    o.workspace = o.view ? 0 : eager_workspace(record_of(g, n), n, in, out);
    set_types(o, in, n.inputs);
    o.written = written_operands(g, n);
    o.signature = n.op == op_code::redistribute ? redistribution_signature(of.hashes[x], of.hashes[n.spec]) : 0;
    if (n.op == op_code::opaque) o.function = opaque_function_of(g, n);
    o.custom = custom_of(g, n);
    o.results = result_count(g, n);
    if (rules::is_random(n.op)) o.site = static_cast<std::int32_t>(attributes_of<random_attributes>(n.a).site);
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

// Node i of a program, with several results: the values of their nodes, of those that run.
template <class Rank>
void run_results(const graph_view& g, prepared_program<Rank>& p, int i, const eager_value<Rank>* const* in, int n) {
  eager_value<Rank>* to[max_results]{};
  for (int j = i + 1; j < g.node_count; ++j)
    if (g.nodes[j].op == op_code::getitem && g.nodes[j].in[0] == i && p.runs[static_cast<std::size_t>(j)] != 0)
      to[attributes_of<getitem_attributes>(g.nodes[j].a).result] = &p.value[static_cast<std::size_t>(j)];
  apply_results_eagerly<Rank>(p.operation[static_cast<std::size_t>(i)], g.nodes[i].f, in, n, to);
}

// `in` are the program's operands, `out` becomes its results, tensors of their own. A value is given back to the pool after its last use, nodes
// that no result depends on are not run. Collective where the program is.
// An operand may be missing (have no storage) where `may_miss`: then what would be computed of it is missing too, except
// that a sum of two is the other one; what updates read is by_group[number of the group]. The core is that of the first parameter
// or input. `observer`: null, or told of every node.
template <class Rank>
void run_eagerly(const eager_program<Rank>& of, bool may_miss, eager_core<Rank>& core, const eager_value<Rank>* const* in,
                 int operands, eager_value<Rank>* out, const step_env* by_group = nullptr,
                 call_observer* observer = nullptr) {
  using program = prepared_program<Rank>;
  const graph_view& g = of.g;
  for (int k = 0; k < operands; ++k)
    if (!(may_miss && !in[k]->storage) && &in[k]->live() != &core) refuse_mixed_runs();
  auto* p = static_cast<program*>(core.find(of.key));
  if (!p) p = &core.template add<program>(of.key, of);
  const typename program::clear at_end{*p};
  const std::int32_t first_site = core.site;
  core.site += g.sites;
  if (core.env.random == random_policy::by_offset && core.site_offset.size() == static_cast<std::size_t>(first_site))
    core.next_offset = site_offsets(g, {}, core.next_offset, core.site_offset);
  for (int i = 0; i < g.node_count; ++i) {
    const node& n = g.nodes[i];
    const auto at = static_cast<std::size_t>(i);
    if (p->runs[at] == 0) continue;
    if (observer) observer->before(i);
    const eager_operation<Rank>& o = p->operation[at];
    if (may_miss && (is_update(n.op) || is_optimizer_term(n.op))) core.env = by_group[optimizer_group(n.op, n.a)];
    if (is_leaf(n.op)) {
      const int first = n.op == op_code::input           ? 0
                        : n.op == op_code::param         ? of.inputs
                        : n.op == op_code::module_buffer ? of.inputs + of.parameters
                                                         : of.inputs + of.parameters + of.buffers;
      p->value[at] = *in[first + static_cast<int>(attributes_of<leaf_attributes>(n.a).index)];
    } else if (n.inputs == 0) {  // a constant
      const std::int32_t site =
          rules::is_random(n.op) ? first_site + static_cast<std::int32_t>(attributes_of<random_attributes>(n.a).site) : -1;
      p->value[at] = fill_eagerly<Rank>(core, n.op, n.a, n.f, *o.out, o.kernel, site);
    } else {
      const eager_value<Rank>* x[max_inputs];
      int there = 0;
      for (int k = 0; k < n.inputs; ++k) {
        x[k] = &p->value[static_cast<std::size_t>(n.in[k])];
        there += x[k]->storage ? 1 : 0;
      }
      if (n.op == op_code::getitem) {  // it was computed with its operand
      } else if (o.results > 1) {
        if (!may_miss || there == n.inputs) run_results(g, *p, i, x, n.inputs);
      } else if (!may_miss || there == n.inputs) p->value[at] = apply_eagerly<Rank>(o, n.f, x, n.inputs, first_site);
      else if (n.op == op_code::add && there == 1) p->value[at] = x[0]->storage ? *x[0] : *x[1];
    }
    for (int d = p->dies_begin[at]; d < p->dies_begin[at + 1]; ++d)
      p->value[static_cast<std::size_t>(p->dies[static_cast<std::size_t>(d)])] = eager_value<Rank>{};
  }
  if (observer) observer->before(g.node_count);
  for (int k = 0; k < of.result_count; ++k) {
    if (of.results[k] < 0) {
      out[k] = eager_value<Rank>{};
      continue;
    }
    eager_value<Rank>& v = p->value[static_cast<std::size_t>(of.results[k])];
    out[k] = v.storage && v.storage.is_held() ? v.lend() : v;
  }
}

// The states of a program's optimizer before its first step: zeros, in order.
template <class Rank>
std::vector<eager_value<Rank>> zero_states(const graph_view& g, eager_core<Rank>& core) {
  std::vector<eager_value<Rank>> states;
  for (int i = 0; i < g.node_count; ++i) {
    if (g.nodes[i].op != op_code::state) continue;
    const auto at = static_cast<std::size_t>(attributes_of<leaf_attributes>(g.nodes[i].a).index);
    if (states.size() <= at) states.resize(at + 1);
    states[at] = eager_value<Rank>(core, g.specs[g.nodes[i].spec]);
    std::memset(states[at].data(), 0,
                static_cast<std::size_t>(states[at].layout->numel()) * size_of(g.specs[g.nodes[i].spec].type));
  }
  return states;
}

}  // namespace shardwise::inline v0_1::runtime
