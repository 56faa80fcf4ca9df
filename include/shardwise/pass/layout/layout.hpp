// SPDX-License-Identifier: Apache-2.0
// optimize_layout: what lies between convolutions is stored channels-last inside of a program.
#pragma once

#include <shardwise/pass/framework/rewrite.hpp>
#include <shardwise/pass/layout/estimate.hpp>

namespace shardwise::inline v0_1 {

// Nothing is said of the sizes that a run will have.
struct any_sizes {
  static constexpr bool is_named = false;
};
// The run-time sizes that a program mostly has, size 0 first, as resize takes them; those that are not named are taken to be at their
// bounds. Errors: layout_sizes, of one that the program cannot have.
template <std::int64_t... N>
struct expected_sizes {
  static_assert(sizeof...(N) > 0, "shardwise: expected_sizes: at least one size is named, as in expected_sizes<8>.");
  static constexpr bool is_named = true;
  static constexpr int count = static_cast<int>(sizeof...(N));
  static constexpr std::int64_t n[sizeof...(N) > 0 ? sizeof...(N) : 1] = {N...};
};

namespace passes {

template <layout_mode Mode, weight_storage Weights, class Splitter, convolution_kernels Kernels, class Sizes>
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
        const layout_copy c = plan.copy_of(g, i, k);
        in[k] = c == layout_copy::none            ? to[x]
                : c == layout_copy::channels_last ? copied(g, b, x, memory_format::channels_last)
                                                  : copied(g, b, x, memory_format::contiguous);
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

  // What a stage begins with is found in constants of its own, each a walk or two over the graph; for what might be turned, and of which
  // times are estimated, and for what is, which is mostly the same. Of: the choice, as a type with a value.
  template <class Source>
  struct candidates {
    static constexpr auto value = [] {
      layout_choice<graph_type_of<Source>::node_capacity> c;
      c.template find<Mode, Splitter>(Source::value, Kernels);
      return c;
    }();
  };
  template <class Source, class Of>
  static constexpr auto preferred = [] {
    preferred_nodes<graph_type_of<Source>::node_capacity> p;
    p.find(Source::value, Of::value);
    return p;
  }();
  template <class Source, class Of>
  static constexpr auto plan_of = [] {
    layout_plan<graph_type_of<Source>::node_capacity> p;
    p.find(Source::value, Of::value, preferred<Source, Of>, Weights);
    return p;
  }();

  // In constants of so many nodes: an estimate of a convolution looks at all rows of its kind.
  static constexpr int estimated_at_once = 512;
  template <class Source>
  static constexpr layout_points points = [] {
    layout_points p;
    p.template find<Sizes>(Source::value);
    return p;
  }();
  template <class Source>
  static constexpr std::int64_t bound_of_size(int i) {
    return i < max_dyn_sizes ? dyn_bounds_of(Source::value)[i] : 0;
  }
  // Of expected_sizes the number of the first that no run has, -1: none.
  template <class Source>
  static constexpr int impossible_size = [] {
    if constexpr (Sizes::is_named)
      for (int i = 0; i < Sizes::count; ++i)
        if (Sizes::n[i] < 1 || Sizes::n[i] > bound_of_size<Source>(i)) return i;
    return -1;
  }();
  template <class Source>
  static constexpr bool sizes_are_possible() {
    if constexpr (constexpr int i = impossible_size<Source>; i < 0) return true;
    else return raise<problem::layout_sizes, have<Sizes::n[i]>, want<bound_of_size<Source>(i)>, dyn_size<i>>::ok;
  }

  template <class Source, int Begin, int Point>
  static constexpr auto some_times = [] {
    layout_times<candidates<Source>::value.parts.count> t;
    t.clear();
    t.add_convolutions(Source::value, candidates<Source>::value.parts.of, plan_of<Source, candidates<Source>>, Kernels,
                       Begin, Begin + estimated_at_once, points<Source>.at[Point]);
    return t;
  }();
  template <class Source, int Point, class Parts>
  struct times;
  template <class Source, int Point, int... I>
  struct times<Source, Point, std::integer_sequence<int, I...>> {
    static constexpr auto value = [] {
      using one = layout_times<candidates<Source>::value.parts.count>;
      one t;
      t.clear();
      const one* const all[] = {&some_times<Source, I * estimated_at_once, Point>...};
      for (const one* const some : all) t.add(*some);
      t.add_copies(Source::value, candidates<Source>::value.parts.of, plan_of<Source, candidates<Source>>,
                   points<Source>.at[Point]);
      return t;
    }();
  };
  template <class Source, class Points>
  struct times_at;
  template <class Source, int... Point>
  struct times_at<Source, std::integer_sequence<int, Point...>> {
    using nodes = std::make_integer_sequence<int, 1 + Source::value.node_count / estimated_at_once>;
    static constexpr layout_times_at<candidates<Source>::value.parts.count, static_cast<int>(sizeof...(Point))> value{
        {times<Source, Point, nodes>::value...}};
  };
  template <class Source>
  struct settled {
    static constexpr auto value = [] {
      layout_choice<graph_type_of<Source>::node_capacity> c;
      c.settle(candidates<Source>::value, times_at<Source, std::make_integer_sequence<int, points<Source>.count>>::value);
      return c;
    }();
  };
  template <class Source>
  using choice = std::conditional_t<Mode == layout_mode::automatic && candidates<Source>::value.any, settled<Source>,
                                    candidates<Source>>;
  template <class Source>
  static constexpr bool keeps_all = [] {
    for (int p = 0; p < candidates<Source>::value.parts.count; ++p)
      if (candidates<Source>::value.chosen[p] != choice<Source>::value.chosen[p]) return false;
    return true;
  }();
  template <class Source>
  static constexpr auto prepared =
      plan_of<Source, std::conditional_t<keeps_all<Source>, candidates<Source>, choice<Source>>>;

  // The same at run time.
  template <class Graph>
  static constexpr auto planned_by(const Graph& g, const layout_choice<Graph::node_capacity>& c) {
    preferred_nodes<Graph::node_capacity> f;
    layout_plan<Graph::node_capacity> p;
    f.find(g, c);
    p.find(g, c, f, Weights);
    return p;
  }
  template <class Graph>
  static constexpr auto times_of(const Graph& g, const layout_choice<Graph::node_capacity>& c,
                                 const layout_plan<Graph::node_capacity>& p) {
    layout_points where;
    where.template find<Sizes>(g);
    layout_times_at<subgraph_map<Graph::node_capacity>::capacity, layout_points::most> t{};
    for (int k = 0; k < layout_points::most; ++k) {  // what is not asked for is the first again
      if (k > 0 && k >= where.count) {
        t.at[k] = t.at[0];
        continue;
      }
      t.at[k].clear();
      t.at[k].add_convolutions(g, c.parts.of, p, Kernels, 0, g.node_count, where.at[k]);
      t.at[k].add_copies(g, c.parts.of, p, where.at[k]);
    }
    return t;
  }
  template <class Graph>
  static constexpr auto planned(const Graph& g) {
    layout_choice<Graph::node_capacity> c;
    c.template find<Mode, Splitter>(g, Kernels);
    const auto p = planned_by(g, c);
    if (Mode != layout_mode::automatic || !c.any) return p;
    layout_choice<Graph::node_capacity> settled;
    settled.settle(c, times_of(g, c, p));
    return planned_by(g, settled);
  }
  template <class Graph>
  static constexpr layout_decision decide(const Graph& g, int part) {
    layout_choice<Graph::node_capacity> c;
    c.template find<Mode, Splitter>(g, Kernels);
    if (part < 0 || (part > 0 && part >= c.parts.count)) return {false, layout_reason::no_convolution};
    layout_facts f = layout_facts_of(g, c.parts.of, part, Kernels);
    if (Mode == layout_mode::automatic && c.any) {
      layout_points where;
      where.template find<Sizes>(g);
      const auto t = times_of(g, c, planned_by(g, c));
      f.as_it_is = t.at[0].as_it_is[part] / 1e3;
      f.channels_last = t.at[0].all_turned(part) / 1e3;
      f.copies = t.at[0].copies[part] / 1e3;
      f.at = where.at[0];
      if (const int k = t.least(part, where.count); k > 0) {
        f.least_at = where.at[k];
        f.least_as_it_is = t.at[k].as_it_is[part] / 1e3;
        f.least_channels_last = t.at[k].all_turned(part) / 1e3;
      }
    }
    return decide_layout(Mode, f);
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
// Mode: by default channels-last is chosen where it is estimated to save time, copies included, and else the graph is what it was; the
// estimate knows convolutions and copies, on hosts and by cuDNN (passes::layout_times). layout_mode::torch is torch.compile's rule.
// Weights: with weight_storage::frozen what the program never writes, parameters of a forward step, is stored channels-last where it
// lies, and copied by nobody; executors take and give its values whole, as ever.
// Splitter: ddp_buckets<> where parts of the program are decided one by one, each of which takes and gives values as they were traced.
// Kernels: by what the convolutions will be computed; by default what the source is linked with.
// Sizes: where a batch is known at run time alone, expected_sizes<8> decides by what is mostly met. By default channels-last has to gain at
// the bounds and may not lose by more than a tenth at a quarter of them nor at 1 (passes::layout_points): one program serves all sizes.
template <layout_mode Mode = layout_mode::automatic, weight_storage Weights = weight_storage::as_declared,
          class Splitter = whole_graph, convolution_kernels Kernels = linked_convolutions, class Sizes = any_sizes>
struct optimize_layout : passes::rewriting<passes::layout_rules<Mode, Weights, Splitter, Kernels, Sizes>> {
  using rules = passes::layout_rules<Mode, Weights, Splitter, Kernels, Sizes>;
  using key = optimize_layout<>;
  using verified_with_next = void;
  using preserves = passes_list<kept::outputs, kept::updates, kept::collectives>;

  // Of a graph, or of part `part` where Splitter makes several: what is done, why, and the estimates. to_text (report.hpp) says it.
  template <class Graph>
  static constexpr layout_decision decide(const Graph& g, int part = 0) {
    return rules::decide(g, part);
  }

  // The graph itself where it stays as it is.
  template <class Source, bool Turns = rules::template choice<Source>::value.any>
  struct run : passes::rewriting<rules>::template in_stages<Source> {
    static_assert(rules::template sizes_are_possible<Source>());
  };
  template <class Source>
  struct run<Source, false> {
    static_assert(rules::template sizes_are_possible<Source>());
    static constexpr const auto& value = Source::value;
    static constexpr bool unchanged = true;
  };
};

}  // namespace shardwise::inline v0_1
