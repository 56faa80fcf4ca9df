// SPDX-License-Identifier: Apache-2.0
// optimize_layout: what lies between convolutions is stored channels-last inside of a program.
#pragma once

#include <shardwise/pass/framework/rewrite.hpp>
#include <shardwise/pass/layout/preferred.hpp>

namespace shardwise::inline v0_1 {

// Whether parameters that a program never writes, its frozen weights, are stored channels-last themselves instead of copied in each run.
enum class weight_storage : std::uint8_t { as_declared, frozen };

namespace passes {

// What readers ask of each value of four dims, bit by bit.
template <int Nodes>
struct layout_needs {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  static constexpr unsigned char wanted = 1, strict = 2, kernel = 4;
  unsigned char of[capacity];  // read by its strides; to be stored as recorded; read by a convolution as its weight

  template <class Graph>
  constexpr void find(const Graph& g, const layout_choice<Nodes>& choice, const preferred_nodes<Nodes>& preferred) {
    for (unsigned char& o : of) o = 0;
    if (!choice.any) return;
    for (int k = 0; k < g.output_count; ++k) of[g.outputs[k]] = strict;
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      for (int k = 0; k < n.inputs; ++k) {
        const int x = n.in[k];
        if (g.specs[g.nodes[x].spec].rank != 4) continue;
        const layout_need need = choice.parts.is_boundary(g, x, i) ? layout_need::strict : layout_need_of(g, i, k);
        if (need == layout_need::any) of[x] |= wanted;
        else if (need == layout_need::strict || g.nodes[x].op == op_code::param) of[x] |= strict;
      }
      if (!preferred.is[i]) continue;
      const convolving what = convolving_of(g, n);
      if (what == convolving::forward || what == convolving::dx) of[n.in[1]] |= kernel;
    }
  }
};

// What becomes of each node.
template <int Nodes>
struct layout_plan {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  bool last[capacity];       // stored channels-last, or was already
  bool convolves[capacity];  // reads all that it reads channels-last

  template <class Graph>
  constexpr void find(const Graph& g, const preferred_nodes<Nodes>& preferred, const layout_needs<Nodes>& needs,
                      weight_storage weights) {
    using bits = layout_needs<Nodes>;
    for (int i = 0; i < capacity; ++i) last[i] = convolves[i] = false;
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      const spec& s = g.specs[n.spec];
      if (s.rank != 4) continue;
      const convolving what = preferred.is[i] && unit_of(g, i) < 0 ? convolving_of(g, n) : convolving::none;
      convolves[i] = what != convolving::none;
      if (!is_contiguous(s)) {
        last[i] = is_channels_last(s);
        continue;
      }
      if ((needs.of[i] & (bits::wanted | bits::strict)) != bits::wanted) continue;
      if (n.op == op_code::param) last[i] = weights == weight_storage::frozen && (needs.of[i] & bits::kernel) != 0;
      else
        last[i] = preferred.is[i] && n.inputs > 0 && n.expression < 0 && may_be_strided(g, n) &&
                  n.op != op_code::contiguous && what != convolving::dw && unit_of(g, i) < 0;
    }
  }
};

template <layout_mode Mode, weight_storage Weights, class Splitter>
struct layout_rules {
  template <class In, class Out>
  struct state : rewrite_state<In, Out> {
    using base = rewrite_state<In, Out>;
    using base::capacity, base::to, base::cursor;

    layout_plan<In::node_capacity> plan;
    int other[capacity];  // the copy of a value in the order that it is not stored in, -1: none yet

    constexpr void begin(const In& g) { begin(g, planned(g)); }
    constexpr void begin(const In& g, const layout_plan<In::node_capacity>& p) {
      base::begin(g);
      for (int i = 0; i < capacity; ++i) {
        other[i] = -1;
        plan.last[i] = p.last[i];
        plan.convolves[i] = p.convolves[i];
      }
    }

    constexpr bool step(const In& g, builder& b) {
      if (cursor >= g.node_count) {
        base::set_outputs(g);
        return false;
      }
      const int i = cursor++;
      const node& given = g.nodes[i];
      int in[max_inputs]{};
      for (int k = 0; k < given.inputs; ++k) {
        const int x = given.in[k];
        const bool turned = plan.last[x] && !is_channels_last(g.spec_of(x));  // by this pass
        in[k] = to[x];
        if (plan.convolves[i] && !plan.last[x]) in[k] = copied(g, b, x, memory_format::channels_last);
        else if (turned && layout_need_of(g, i, k) != layout_need::any) in[k] = copied(g, b, x, memory_format::contiguous);
      }
      base::copy(b, g, i);
      if (to[i] >= b.node_capacity) return true;
      node& n = b.nodes[to[i]];
      for (int k = 0; k < n.inputs; ++k) n.in[k] = in[k];
      if (plan.last[i] && is_contiguous(g.specs[given.spec]))
        n.spec = b.intern(in_format(g.specs[given.spec], memory_format::channels_last));
      return true;
    }

   private:
    // Value x in another order, behind which it stands as its own module's.
    constexpr int copied(const In& g, builder& b, int x, memory_format format) {
      if (other[x] >= 0) return other[x];
      base::work.take(200);
      node n = empty_node;
      n.op = op_code::contiguous;
      n.a = attributes<contiguous_attributes>(static_cast<int>(format));
      n.inputs = 1;
      n.in[0] = to[x];
      n.scope = g.nodes[x].scope;
      n.spec = b.intern(in_format(g.spec_of(x), format));
      return other[x] = b.append(n);
    }
  };

  // What a stage begins with is found in constants of its own, each a walk or two over the graph.
  template <class Source>
  static constexpr auto choice = [] {
    layout_choice<graph_type_of<Source>::node_capacity> c;
    c.template find<Mode, Splitter>(Source::value);
    return c;
  }();
  template <class Source>
  static constexpr auto preferred = [] {
    preferred_nodes<graph_type_of<Source>::node_capacity> p;
    p.find(Source::value, choice<Source>);
    return p;
  }();
  template <class Source>
  static constexpr auto needs = [] {
    layout_needs<graph_type_of<Source>::node_capacity> n;
    n.find(Source::value, choice<Source>, preferred<Source>);
    return n;
  }();
  template <class Source>
  static constexpr auto prepared = [] {
    layout_plan<graph_type_of<Source>::node_capacity> p;
    p.find(Source::value, preferred<Source>, needs<Source>, Weights);
    return p;
  }();
  // The same at run time.
  template <class Graph>
  static constexpr auto planned(const Graph& g) {
    layout_choice<Graph::node_capacity> c;
    preferred_nodes<Graph::node_capacity> f;
    layout_needs<Graph::node_capacity> n;
    layout_plan<Graph::node_capacity> p;
    c.template find<Mode, Splitter>(g);
    f.find(g, c);
    n.find(g, c, f);
    p.find(g, f, n, Weights);
    return p;
  }

  // Every tensor of four dims may be copied once, and its spec in either order.
  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    int nodes = g.node_count, specs = g.spec_count;
    for (int i = 0; i < g.node_count; ++i) nodes += g.spec_of(i).rank == 4 ? 1 : 0;
    for (int s = 0; s < g.spec_count; ++s) specs += g.specs[s].rank == 4 ? 1 : 0;
    return {nodes, specs};
  }
};

}  // namespace passes

// Where decide_layout says so of a graph, its convolutions read and write channels-last, and so does what torch.compile prefers so
// around them (passes::preferred_nodes), if its kernels go by strides. A weight, or an input, is copied once, where it is first read;
// where an operation needs what it reads stored as it was traced (passes::layout_need_of), that is copied back, or never stored
// otherwise if nothing else reads it. Law: outputs, updates and what collectives move keep the strides of the trace, on which the
// caller and views rely; every value is the same, and bit by bit so but for sums over dims that are stored in another order and for
// convolutions whose kernels add in another order. Price: a copy for each weight and each entry and exit, and the memory of those.
// Weights: with weight_storage::frozen what the program never writes, parameters of a forward step, is stored channels-last where it
// lies, and copied by nobody; executors take and give its values whole, as ever.
// Splitter: ddp_buckets<> where parts of the program are decided one by one, each of which takes and gives values as they were traced.
template <layout_mode Mode = layout_mode::automatic, weight_storage Weights = weight_storage::as_declared,
          class Splitter = whole_graph>
struct optimize_layout : passes::rewriting<passes::layout_rules<Mode, Weights, Splitter>> {
  using key = optimize_layout<>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates, kept::collectives>;

  // The graph itself where it stays as it is.
  template <class Source, bool Turns = passes::layout_rules<Mode, Weights, Splitter>::template choice<Source>.any>
  struct run : passes::rewriting<passes::layout_rules<Mode, Weights, Splitter>>::template in_stages<Source> {};
  template <class Source>
  struct run<Source, false> {
    static constexpr const auto& value = Source::value;
    static constexpr bool unchanged = true;
  };
};

}  // namespace shardwise::inline v0_1
