// SPDX-License-Identifier: Apache-2.0
// functionalise: a graph that writes tensors in place becomes one that computes the same without, so that passes,
// differentiation and the memory plan may take nodes for values.
#pragma once

#include <shardwise/autodiff/grad.hpp>
#include <shardwise/pass/functionalise/functional.hpp>
#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/framework/sweep.hpp>

namespace shardwise::inline v0_1 {

namespace passes {

// In stages, on constants. Root: the node that is differentiated, -1 for none.
template <int Root>
struct functional_stages {
  template <class Source>
  static constexpr auto size = [] {
    aliasing<graph_type_of<Source>::node_capacity> a;
    a.find(Source::value);
    return a.sizes_after(Source::value);
  }();
  template <class Source>
  using state = functional_state<resized<graph_type_of<Source>, size<Source>.nodes, size<Source>.specs>,
                                 graph_type_of<Source>::node_capacity>;
  // A write goes through the rules of some operations.
  static constexpr int per_stage(int nodes) { return nodes / 2 > 0 ? nodes / 2 : 1; }
  template <class Source>
  static constexpr int stages(int nodes) {
    return graph_type_of<Source>::node_capacity / per_stage(nodes) + 1;
  }
  template <class Source, class State>
  static constexpr void start(State& st) {
    functional::begin(st, Source::value);
  }
  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    functional::go(st, Source::value, per_stage(nodes), Root);
  }
};

// The functional graph without what nothing reads, and where the node Root is in it. A graph that cannot be made
// functional is as it was, without its writes, and says why in `error`.
template <class Source, int Root = -1, int Nodes = stage_nodes>
struct functional_graph {
 private:
  using staged_type = staged<functional_stages<Root>, Source, Nodes>;
  static constexpr bool failed = static_cast<bool>(staged_type::value.g.error);

  struct mark {
    detail::live_mask<std::remove_cvref_t<decltype(staged_type::value.g)>::node_capacity> mask;
    int root = -1;
  };
  template <class State>
  static constexpr mark marked_in(const State& st) {
    mark m;
    if (st.result >= 0) m.mask.live[st.result] = 1;
    m.mask.kept = mark_live(st.g, m.mask.live);
    if (st.result >= 0) m.root = 0;
    for (int i = 0; i < st.result; ++i) m.root += m.mask.live[i];
    return m;
  }

  template <bool Failed, class = void>
  struct result {
    static constexpr auto marked = marked_in(staged_type::value);
    static constexpr int root = marked.root;
    static constexpr auto value = [] {
      resized<graph_type_of<Source>, marked.mask.kept, staged_type::value.g.spec_count> r;
      detail::keep(r, staged_type::value.g, marked.mask.live);
      return r;
    }();
  };
  template <class T>
  struct result<true, T> {
    static constexpr int root = Root;
    static constexpr auto value = [] {
      auto g = Source::value;
      for (int i = 0; i < g.node_count; ++i)
        if (g.nodes[i].op == op_code::copy_) {
          g.nodes[i].op = op_code::contiguous;
          g.nodes[i].inputs = 1;
        }
      g.error = staged_type::value.g.error;
      return g;
    }();
  };

 public:
  static constexpr const auto& value = result<failed>::value;
  static constexpr int root = result<failed>::root;
};

// Writes to leaves come last: what is appended to a functional graph reads leaves as they were. `ids` are further nodes
// to be followed, -1 for none.
template <class Graph>
constexpr void sink_writes(Graph& g, int* ids, int count) {
  constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
  node moved[capacity];
  int to[capacity]{};
  bool late[capacity]{};
  int n = 0;
  for (int pass = 0; pass < 2; ++pass)
    for (int i = 0; i < g.node_count; ++i) {
      const node& x = g.nodes[i];
      if (pass == 0) {
        late[i] = x.op == op_code::assign;
        for (int k = 0; k < x.inputs; ++k) late[i] = late[i] || late[x.in[k]];
      }
      if (late[i] != (pass == 1)) continue;
      moved[n] = x;
      for (int k = 0; k < x.inputs; ++k) moved[n].in[k] = to[x.in[k]];
      to[i] = n++;
    }
  for (int i = 0; i < n; ++i) g.nodes[i] = moved[i];
  for (int k = 0; k < g.output_count; ++k) g.outputs[k] = to[g.outputs[k]];
  for (int k = 0; k < count; ++k)
    if (ids[k] >= 0) ids[k] = to[ids[k]];
}

}  // namespace passes

// Every write in place becomes a value, and what shares the written storage is made anew out of it where it is read: views
// of the tensor, and through the inverse views the tensor that a written view is a part of (a slice by slice_scatter,
// which copies no more than the slice where nothing reads the tensor as it was). The graph's inputs, parameters and states
// that were written are copied back once each, by an assign at the end, and outputs that share their storage are views of
// them; what was computed and then written needs no copy. Law: outputs and written leaves are the same bits, as stored
// before (but for a redistribution of a tensor that is not stored densely, which becomes dense when it is written).
// Redistributions are values: one that is written moves what it moved before, and what was written goes on from there; one
// to what its operand is vanishes. Programs are made functional when they are traced; a graph without writes is itself.
struct functionalise {
  using shardwise_pass = void;
  using admits_mutation = void;
  using preserves = passes_list<kept::output_values>;

  template <class Source, int Nodes>
  using in_stages = passes::functional_graph<Source, -1, Nodes>;
  template <class Source, bool Writes = has_mutation(Source::value)>
  struct run {
    static constexpr const auto& value = Source::value;
  };
  template <class Source>
  struct run<Source, true> : passes::functional_graph<Source> {};

  // A graph made at run time needs room for the views that are made anew.
  template <class Graph>
  static constexpr finding apply(Graph& g) {
    if (!has_mutation(g)) return {};
    passes::functional_state<Graph, Graph::node_capacity> st;
    passes::functional::begin(st, g);
    while (st.cursor <= g.node_count && !st.g.error) passes::functional::go(st, g, g.node_count + 1, -1);
    if (st.g.error) return st.g.error;
    g = st.g;
    passes::remove_dead(g);
    return {};
  }
};

namespace detail {

// Whether a program that is differentiated writes over what its gradients are taken with respect to.
template <class Trace, class Graph>
constexpr finding leaf_problem(const Graph& g) {
  constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
  passes::aliasing<capacity> seen;
  seen.find(g);
  for (int i = 0; i < g.node_count; ++i)
    if (seen.written[i] && autodiff::is_variable<Trace>(g.nodes[i])) return {problem::mutation_leaf, i};
  return {};
}
template <class Trace>
constexpr int result_of(bool gradient) {
  if (!gradient) return -1;
  return autodiff::root_of<Trace>(Trace::value);
}

// Whether what is differentiated needs a gradient through a buffer of a module: it reads one that has been written with what
// depends on a variable. The finding's node is the first that reads it.
template <class Trace, class Graph>
constexpr finding buffer_problem(const Graph& g, int result) {
  bool any = false;
  for (int i = 0; i < g.node_count && !any; ++i) any = g.nodes[i].op == op_code::module_buffer;
  if (!any) return {};
  constexpr int capacity = Graph::node_capacity > 0 ? Graph::node_capacity : 1;
  passes::aliasing<capacity> seen;
  seen.find(g);
  int root[capacity]{};  // as gradients see it: they do not come from a detached value to what it is a view of
  for (int i = 0; i < g.node_count; ++i)
    root[i] = seen.root[i] == i || g.nodes[i].op == op_code::detach ? i : root[g.nodes[i].in[0]];
  bool needs[capacity]{}, written_needs[capacity]{};     // the second of a root, by what it was written with
  int through[capacity]{}, written_through[capacity]{};  // the reader of such a buffer that a node depends on, plus one
  const auto read_needs = [&](int i) { return needs[i] || written_needs[root[i]]; };
  const auto read_through = [&](int i) { return through[i] > 0 ? through[i] : written_through[root[i]]; };
  for (int i = 0; i < g.node_count; ++i) {
    const node& x = g.nodes[i];
    const int r = root[i];
    if (x.op == op_code::copy_) {
      const bool whole = seen.depth[x.in[0]] == 0;  // else the rest stays what it was
      written_needs[r] = read_needs(x.in[1]) || (!whole && written_needs[r]);
      const int from = read_through(x.in[1]);
      if (whole || from > 0) written_through[r] = from;
      if (whole) {
        needs[r] = false;
        through[r] = 0;
      }
      continue;
    }
    needs[i] = autodiff::is_variable<Trace>(x);
    const autodiff::adjoint_rule& rule = autodiff::rule_of(g, x);
    for (int k = 0; k < x.inputs; ++k) {
      if (!autodiff::differentiable(rule, k)) continue;
      const int from = root[x.in[k]];
      const bool held = g.nodes[from].op == op_code::module_buffer;
      needs[i] = needs[i] || (!held && read_needs(x.in[k]));
      if (through[i] == 0) through[i] = held && written_needs[from] ? i + 1 : read_through(x.in[k]);
    }
  }
  const int reader = read_through(result);
  if (reader > 0) return {problem::buffer_gradient, reader - 1};
  const int last = root[result];
  if (g.nodes[last].op == op_code::module_buffer && written_needs[last]) return {problem::buffer_gradient, result};
  return {};
}

// A tensor that gets other storage where gradients are computed.
template <class Graph>
constexpr finding first_set(const Graph& g) {
  for (int i = 0; i < g.node_count; ++i)
    if (sets_storage(g.nodes[i])) return {problem::set_differentiated, i};
  return {};
}

// A trace as programs are made of it: itself, if it writes nothing in place. With Gradient its result is differentiated.
template <class Trace, bool Gradient, bool Writes>
struct functional_of {
  using type = Trace;
};
template <class Trace, bool Gradient>
struct functional_trace : Trace {
  static constexpr finding leaf_wrong = Gradient ? leaf_problem<Trace>(Trace::value) : finding{};
  static constexpr finding buffer_wrong = Gradient ? buffer_problem<Trace>(Trace::value, result_of<Trace>(true)) : finding{};
  static constexpr finding set_wrong = Gradient ? first_set(Trace::value) : finding{};
  static constexpr finding wrong = leaf_wrong ? leaf_wrong : buffer_wrong ? buffer_wrong : set_wrong;
#if !SHARDWISE_DEVICE_PASS
  static_assert(raise_at<wrong.what, Trace, wrong.operand, typename Trace::mesh_type>::ok);
#endif
  using made_functional = passes::functional_graph<Trace, result_of<Trace>(Gradient)>;
  static constexpr const auto& value = made_functional::value;
  static constexpr int root = made_functional::root;
};
template <class Trace, bool Gradient>
struct functional_of<Trace, Gradient, true> {
  using type = functional_trace<Trace, Gradient>;
};
template <class Trace, bool Gradient>
using functional = typename functional_of<Trace, Gradient, has_mutation(Trace::value)>::type;

// What a differentiated trace became, with its writes at the end.
template <class Source>
struct sunk_writes {
  static constexpr auto value = [] {
    auto g = Source::value;
    passes::sink_writes(g, static_cast<int*>(nullptr), 0);
    return g;
  }();
};
template <class Trace>
inline constexpr bool writes_leaves = requires { typename Trace::made_functional; };
template <class Trace, class Source>
using writes_at_end = std::conditional_t<writes_leaves<Trace>, sunk_writes<Source>, Source>;

}  // namespace detail

}  // namespace shardwise::inline v0_1
