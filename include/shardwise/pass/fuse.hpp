// SPDX-License-Identifier: Apache-2.0
// fuse_pointwise, fuse_kernels: the same values from fewer kernels.
#pragma once

#include <bit>
#include <limits>

#include <shardwise/pass/pipeline.hpp>
#include <shardwise/pass/regions.hpp>
#include <shardwise/pass/simplify.hpp>

namespace shardwise {

namespace passes {

// Writes the new graph: roots as fused nodes, buffers before them, what the buffers hold behind them.
template <class Graph, int From>
struct fuse_writer {
  Graph g;
  int to[From > 0 ? From : 1];
  int cursor = 0;
  bool full = false;  // more expressions than a graph holds: their regions stay as they were, which takes more nodes

  template <class Source>
  constexpr void begin(const Source& from) {
    for (int& x : to) x = -1;
    for (int i = 0; i < from.spec_count; ++i) {
      g.specs[i] = from.specs[i];
      g.hashes[i] = from.hashes[i];
    }
    for (int i = 0; i < from.scope_count; ++i) g.scopes[i] = from.scopes[i];
    g.spec_count = from.spec_count;
    g.scope_count = from.scope_count;
    g.sites = from.sites;
    copy_functions(g, from);
    g.error = from.error;
  }

  constexpr int append(const node& n) {
    if (g.node_count < Graph::node_capacity) g.nodes[g.node_count] = n;
    return g.node_count++;
  }
  constexpr int find(const expression& e) {
    for (int i = 0; i < g.expression_count; ++i)
      if (g.expressions[i] == e) return i;
    if (g.expression_count == max_expressions) return -1;
    g.expressions[g.expression_count] = e;
    return g.expression_count++;
  }

  template <class Source, class Table>
  constexpr void step(const Source& from, const Table& t) {
    const int i = cursor++;
    if (t.root[i] != i || is_skipped(from, t, i)) return;  // what is skipped is written where it is read
    if (t.next[i] < 0) {
      copy(from, t, i);
      return;
    }
    region r;
    insert_region(t, i, r);
    complete(from, t, r);
    write(from, t, r, i);
  }
  template <class Source, class Table>
  constexpr void copy(const Source& from, const Table& t, int i) {
    node n = from.nodes[i];
    for (int k = 0; k < n.inputs; ++k) n.in[k] = written(from, n.in[k]);
    to[i] = append(n);
  }
  // What is skipped is written, with all it reads, when the first node reads it.
  template <class Source>
  constexpr int written(const Source& from, int i) {
    while (to[i] < 0) {
      int first = i;
      while (to[from.nodes[first].in[0]] < 0) first = from.nodes[first].in[0];
      node v = from.nodes[first];
      v.in[0] = to[v.in[0]];
      to[first] = append(v);
    }
    return to[i];
  }

  template <class Source, class Table>
  constexpr void write(const Source& from, const Table& t, const region& r, int i) {
    node n = from.nodes[r.lead >= 0 ? r.lead : i];
    double constants[max_constants]{};
    int id = -1;
    if (r.steps > 0) {
      const expression e = expression_of(from, t, r, constants);
      id = find(e);
      if (id < 0) {  // the table is full: as they were
        full = true;
        for (int k = 0; k < r.count; ++k) copy(from, t, r.member[k]);
        return;
      }
    }
    if (r.lead < 0) {
      n.op = op_code::fused;
      n.f = 0;
      for (int k = 0; k < max_constants; ++k) n.a.v[k] = std::bit_cast<std::int64_t>(constants[k]);
    } else if (r.second >= 0) {
      if (n.op == op_code::norm_apply) {
        n.op = op_code::norm;
        n.f = from.nodes[r.second].f;
        n.a.v[2] = r.keeps_second ? 1 : 0;
      } else if (n.op == op_code::sum) {
        n.op = op_code::norm_grads;
        n.a = from.nodes[r.second].a;
      } else {
        n.a.v[3] = 1;
      }
    }
    n.expression = id;
    n.spec = from.nodes[i].spec;
    n.scope = from.nodes[i].scope;
    int kept[max_inputs]{}, writes = 0;
    if (r.keeps_second) kept[writes++] = r.second;
    for (int k = 0; k < r.stores; ++k) kept[writes++] = r.stored[k];
    for (int k = 0; k < writes; ++k) {
      node b = empty_node;
      b.op = op_code::buffer;
      b.spec = from.nodes[kept[k]].spec;
      b.scope = from.nodes[kept[k]].scope;
      to[kept[k]] = append(b);
    }
    n.inputs = 0;
    for (int k = 0; k < r.own + r.values; ++k) n.in[n.inputs++] = written(from, r.operands[k]);
    for (int k = 0; k < r.stores; ++k) n.in[n.inputs++] = to[r.stored[k]];
    for (int k = n.inputs; k < max_inputs; ++k) n.in[k] = -1;
    to[i] = append(n);
    for (int k = 0; k < writes; ++k) {
      node p = empty_node;
      p.op = op_code::part;
      p.inputs = 2;
      p.in[0] = to[kept[k]];
      p.in[1] = to[i];
      p.spec = from.nodes[kept[k]].spec;
      p.scope = from.nodes[kept[k]].scope;
      to[kept[k]] = append(p);
    }
  }

  template <class Source>
  constexpr void finish(const Source& from) {
    for (int k = 0; k < from.output_count; ++k) g.outputs[k] = to[from.outputs[k]];
    g.output_count = from.output_count;
  }
};

template <bool Leads>
struct grow_regions {
  template <class Source>
  using state = region_table<graph_type_of<Source>::node_capacity>;
  static constexpr int per_stage(int nodes) { return nodes / 4 > 0 ? nodes / 4 : 1; }  // a step costs a thousand steps
  template <class Source>
  static constexpr int stages(int nodes) {
    return graph_type_of<Source>::node_capacity / per_stage(nodes) + 1;
  }
  template <class Source, class State>
  static constexpr void start(State& st) {
    st.begin(Source::value, std::numeric_limits<int>::max());
  }
  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    grow(Source::value, st, per_stage(nodes));
  }
  template <class Graph, class State>
  static constexpr void grow(const Graph& g, State& st, int nodes) {
    for (; nodes > 0 && st.cursor < g.node_count; --nodes, ++st.cursor) visit(g, st, st.cursor, Leads);
  }
};

template <class Grown, int Capacity>
struct write_regions {
  template <class Source>
  using state = fuse_writer<graph<Capacity, graph_type_of<Source>::spec_capacity, graph_type_of<Source>::scope_capacity>,
                            graph_type_of<Source>::node_capacity>;
  static constexpr int per_stage(int nodes) { return nodes / 2 > 0 ? nodes / 2 : 1; }
  template <class Source>
  static constexpr int stages(int nodes) {
    return graph_type_of<Source>::node_capacity / per_stage(nodes) + 1;
  }
  template <class Source, class State>
  static constexpr void start(State& st) {
    st.begin(Source::value);
  }
  template <class Source, class State>
  static constexpr void advance(State& st, int nodes) {
    write(Source::value, Grown::value, st, per_stage(nodes));
  }
  template <class Graph, class Table, class State>
  static constexpr void write(const Graph& g, const Table& t, State& st, int nodes) {
    for (; nodes > 0 && st.cursor < g.node_count; --nodes) st.step(g, t);
    if (st.cursor == g.node_count) st.finish(g);
  }
};

template <bool Leads>
struct fuse {
  using shardwise_pass = void;
  using writes_expressions = void;

  template <class Source, int Nodes = stage_nodes>
  struct in_stages {
   private:
    using grown = staged<grow_regions<Leads>, Source, Nodes>;
    static constexpr int size = Source::value.node_count - grown::value.absorbed + 2 * grown::value.stores;
    template <int Capacity>
    using written = staged<write_regions<grown, Capacity>, Source, Nodes>;

    template <bool Full, class = void>
    struct result {
      static constexpr const auto& value = written<size>::value.g;
    };
    template <class T>
    struct result<true, T> {
      static constexpr const auto& value = written<Source::value.node_count + 2 * grown::value.stores>::value.g;
    };

   public:
    static constexpr const auto& value = result<written<size>::value.full>::value;
  };
  template <class Source>
  struct run : in_stages<Source> {};

  // A value is stored on the way only while the graph has room for the two nodes that this takes; it stays as it is if the
  // new one is larger than it can be.
  template <class Graph>
  static constexpr finding apply(Graph& g) {
    region_table<Graph::node_capacity> t;
    t.begin(g, Graph::node_capacity);
    grow_regions<Leads>::grow(g, t, g.node_count);
    fuse_writer<Graph, Graph::node_capacity> w;
    w.begin(g);
    while (w.cursor < g.node_count) w.step(g, t);
    w.finish(g);
    if (w.g.node_count <= Graph::node_capacity) g = w.g;
    return {};
  }
};

}  // namespace passes

// Pointwise operations on one iteration space become one kernel, which reads every operand and writes every result that
// is needed elsewhere once. Each operation keeps its own arithmetic; where the machine has fused multiply-add, a product
// may be added without having been rounded. The price: what stood between stays until the region's last node.
struct fuse_pointwise : passes::fuse<false> {
  using apply_after = passes_list<cancel_redistributions, merge_common>;  // which know no fused nodes
  using preserves = passes_list<kept::outputs, kept::updates, kept::collectives>;
};

// The same, and pointwise operations that follow a matrix product, an embedding or a reduction become part of its kernel;
// statistics and normalisation are one kernel; so are two reductions over the same rows, and a weight's gradient with
// the sum that is its bias's.
struct fuse_kernels : passes::fuse<true> {
  using apply_after = passes_list<cancel_redistributions, merge_common, fuse_pointwise>;
  using preserves = passes_list<kept::outputs, kept::updates, kept::collectives>;
};

}  // namespace shardwise
