// SPDX-License-Identifier: Apache-2.0
// fuse_pointwise, fuse_kernels: the same values from fewer kernels.
#pragma once

#include <limits>

#include <shardwise/pass/fuse/fuse_writer.hpp>
#include <shardwise/pass/framework/pipeline.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

namespace shardwise::inline v0_1 {

struct merge_products;

namespace passes {

template <bool Leads, bool Within>
struct grow_regions {
  template <class Source>
  using state = region_table<graph_type_of<Source>::node_capacity>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    st.begin(Source::value, std::numeric_limits<int>::max(), Leads, Within);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return grow(Source::value, st, stage_work(nodes));
  }
  template <class Graph, class State>
  static constexpr bool grow(const Graph& g, State& st, stage_work work) {
    for (; st.cursor < g.node_count && work.take(100); ++st.cursor) visit(g, st, st.cursor, work);
    return st.cursor < g.node_count;
  }
};

template <class Grown, int Capacity>
struct write_regions {
  template <class Source>
  using state = fuse_writer<resized<graph_type_of<Source>, Capacity, graph_type_of<Source>::spec_capacity>,
                            graph_type_of<Source>::node_capacity>;
  template <class Source, class State>
  static constexpr void start(State& st) {
    st.begin(Source::value);
  }
  template <class Source, class State>
  static constexpr bool advance(State& st, int nodes) {
    return write(Source::value, Grown::value, st, stage_work(nodes));
  }
  template <class Graph, class Table, class State>
  static constexpr bool write(const Graph& g, const Table& t, State& st, stage_work work) {
    while (st.cursor < g.node_count && work.take(40)) st.step(g, t, work);
    if (st.cursor < g.node_count) return true;
    st.finish(g, t, work);
    return false;
  }
};

// Within: regions stay within one unit each (see graph/units.hpp).
template <bool Leads, bool Within = false>
struct fuse {
  using shardwise_pass = void;
  using writes_expressions = void;

  template <class Source, int Nodes = stage_nodes>
  struct in_stages {
   private:
    using grown = staged<grow_regions<Leads, Within>, Source, Nodes>;
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
    t.begin(g, Graph::node_capacity, Leads, Within);
    grow_regions<Leads, Within>::grow(g, t, stage_work::all());
    fuse_writer<Graph, Graph::node_capacity> w;
    w.begin(g);
    write_regions<void, 0>::write(g, t, w, stage_work::all());
    if (w.g.node_count <= Graph::node_capacity) g = w.g;
    return {};
  }
};

}  // namespace passes

// Pointwise operations on one iteration space become one kernel, which reads every operand and writes every result that
// is needed elsewhere once. Each operation keeps its own arithmetic; where the machine has fused multiply-add, a product
// may be added without having been rounded. The price: what stood between stays until the region's last node.
struct fuse_pointwise : passes::fuse<false> {
  using apply_after = passes_list<cancel_redistributions, merge_common, merge_products>;  // which know no fused nodes
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates, kept::collectives>;
};

// The same, and pointwise operations that follow a matrix product, an embedding or a reduction become part of its kernel;
// statistics and normalisation are one kernel; so are two reductions over the same rows, and a weight's gradient with
// the sum that is its bias's. A cast of such a sum stands behind the kernel that took it in.
struct fuse_kernels : passes::fuse<true> {
  using apply_after = passes_list<cancel_redistributions, merge_common, merge_products, fuse_pointwise>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates, kept::collectives>;
};

}  // namespace shardwise::inline v0_1
