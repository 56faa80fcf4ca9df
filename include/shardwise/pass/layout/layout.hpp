// SPDX-License-Identifier: Apache-2.0
// optimize_layout: what lies between convolutions is stored channels-last inside of a program.
#pragma once

#include <shardwise/pass/framework/rewrite.hpp>
#include <shardwise/pass/layout/preferred.hpp>

namespace shardwise::inline v0_1 {

// Whether parameters that a program never writes, its frozen weights, are stored channels-last themselves instead of copied in each run.
enum class weight_storage : std::uint8_t { as_declared, frozen };

namespace passes {

// What becomes of each node: stored channels-last or as it was.
template <int Nodes>
struct layout_plan {
  static constexpr int capacity = Nodes > 0 ? Nodes : 1;
  layout_choice<Nodes> choice;
  preferred_nodes<Nodes> preferred;
  bool last[capacity];  // stored channels-last, or was already

  template <layout_mode Mode, class Splitter, class Graph>
  constexpr void find(const Graph& g, weight_storage weights) {
    choice.template find<Mode, Splitter>(g);
    if (!choice.any) {
      for (int i = 0; i < capacity; ++i) last[i] = preferred.is[i] = false;
      return;
    }
    preferred.find(g, choice);
    bool wanted[capacity];  // by a reader that goes by strides
    bool strict[capacity];  // or needed as recorded
    bool output[capacity];
    bool kernel[capacity];  // read by a convolution as its weight
    for (int i = 0; i < capacity; ++i) last[i] = wanted[i] = strict[i] = output[i] = kernel[i] = false;
    for (int k = 0; k < g.output_count; ++k) output[g.outputs[k]] = true;
    for (int i = 0; i < g.node_count; ++i) {
      const convolving what = preferred.is[i] ? convolving_of(g, g.nodes[i]) : convolving::none;
      if (what == convolving::forward || what == convolving::dx) kernel[g.nodes[i].in[1]] = true;
      for (int k = 0; k < g.nodes[i].inputs; ++k) {
        const int x = g.nodes[i].in[k];
        if (g.specs[g.nodes[x].spec].rank != 4) continue;
        const layout_need need = choice.parts.is_boundary(g, x, i) ? layout_need::strict : layout_need_of(g, i, k);
        wanted[x] = wanted[x] || need == layout_need::any;
        strict[x] =
            strict[x] || need == layout_need::strict || (g.nodes[x].op == op_code::param && need != layout_need::any);
      }
    }
    for (int i = 0; i < g.node_count; ++i) {
      const node& n = g.nodes[i];
      const spec& s = g.specs[n.spec];
      if (s.rank != 4) continue;
      last[i] = is_channels_last(s) && !is_contiguous(s);
      if (last[i] || output[i] || strict[i] || !wanted[i] || !is_contiguous(s)) continue;
      if (n.op == op_code::param) last[i] = weights == weight_storage::frozen && kernel[i];
      else
        last[i] = preferred.is[i] && n.inputs > 0 && n.expression < 0 && may_be_strided(g, n) &&
                  n.op != op_code::contiguous && convolving_of(g, n) != convolving::dw && unit_of(g, i) < 0;
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

    constexpr void begin(const In& g) {
      base::begin(g);
      for (int& o : other) o = -1;
      plan.template find<Mode, Splitter>(g, Weights);
    }

    constexpr bool step(const In& g, builder& b) {
      if (cursor >= g.node_count) {
        base::set_outputs(g);
        return false;
      }
      const int i = cursor++;
      const node& given = g.nodes[i];
      const bool convolves = plan.preferred.is[i] && unit_of(g, i) < 0 && convolving_of(g, given) != convolving::none;
      int in[max_inputs]{};
      for (int k = 0; k < given.inputs; ++k) {
        const int x = given.in[k];
        const bool turned = plan.last[x] && !is_channels_last(g.spec_of(x));  // by this pass
        in[k] = to[x];
        if (convolves && !plan.last[x]) in[k] = copied(g, b, x, memory_format::channels_last);
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

  // Every tensor of four dims may be copied once, and its spec in either order.
  template <class Graph>
  static constexpr graph_room room(const Graph& g) {
    if (!turns_any<Mode, Splitter>(g)) return {g.node_count, g.spec_count};
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
  template <class Source, bool Turns = passes::turns_any<Mode, Splitter>(Source::value)>
  struct run : passes::rewriting<passes::layout_rules<Mode, Weights, Splitter>>::template in_stages<Source> {};
  template <class Source>
  struct run<Source, false> {
    static constexpr const auto& value = Source::value;
    static constexpr bool unchanged = true;
  };
};

}  // namespace shardwise::inline v0_1
