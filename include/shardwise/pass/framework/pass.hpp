// SPDX-License-Identifier: Apache-2.0
// What a pass is: what it has and declares, what it may promise to keep, and why it cannot be applied to a graph.
#pragma once

#include <type_traits>

#include <shardwise/graph/graph.hpp>
#include <shardwise/pass/analysis/communication.hpp>
#include <shardwise/pass/framework/dce.hpp>
#include <shardwise/support/diagnose.hpp>

namespace shardwise::inline v0_1 {

// A pass is a struct that declares `using shardwise_pass = void;` and has one of
//   template <class Source> struct run;                      its `value` is the new graph, Source::value is the old one;
//                                                            a finding in value.error says why there is none; where its
//                                                            `unchanged` is true, it is Source::value itself
//   template <class Graph> static constexpr finding apply(Graph&);   changes a graph value, or says why it cannot
// and may declare
//   using prerequisites = passes_list<...>;   passes that must have been applied before
//   using apply_after = passes_list<...>;     passes that, if they are applied at all, must be applied before
//   using preserves = passes_list<...>;       what it keeps, see namespace kept; checked wherever it runs
//   using key = K;                            a type by which passes know it: those with equal keys count as one pass
//   using admits_mutation = void;             that it takes graphs that write in place, as they are traced; others are
//                                             given what functionalise made of them
//   using verified_with_next = void;          that it never breaks an invariant that the next pass relies on: of passes in a row
//                                             that say so the last one's graph alone is verified, and each one's where that fails
template <class P>
concept pass = requires { typename P::shardwise_pass; };

template <class... P>
struct passes_list {};

template <class... Passes>
struct pipeline {};

struct functionalise;

// A graph as a type: its `value`.
template <class G>
concept graph_source = requires {
  G::value.node_count;
  G::value.spec_count;
  G::value.output_count;
};

// Why a pass cannot be applied; errors print these types.
namespace pass_order {
struct fine;
struct not_a_pass;
struct not_a_graph;
struct twice;
template <class... Applied>  // they must be applied after the pass
struct must_precede;
template <class... Missing>
struct missing_prerequisite;
template <class... P>
struct applied_passes;
template <class Functionalise>  // the graph writes in place
struct must_follow;
}  // namespace pass_order

template <class P>
  requires pass<P>
struct fact<P> : detail::type_fact<"pass", P> {};
template <>
struct fact<pass_order::not_a_pass> : fact<void> {};  // the sentence says it
template <>
struct fact<pass_order::not_a_graph> : fact<void> {};
template <>
struct fact<pass_order::twice> : fact<void> {};
template <class... P>
struct fact<pass_order::must_precede<P...>> : detail::types_fact<"must_precede", P...> {};
template <class... P>
struct fact<pass_order::missing_prerequisite<P...>> : detail::types_fact<"missing_prerequisite", P...> {};
template <class... P>
struct fact<pass_order::applied_passes<P...>> : detail::types_fact<"applied_passes", P...> {};
template <class P>
struct fact<pass_order::must_follow<P>> : detail::types_fact<"must_follow", P> {};

// What a pass may declare to preserve. A property is a struct with `holds(before, after)`; users may add their own. Where it
// compares what each graph has by itself, `of(graph)` gives that, once for each graph of a pipeline, or `of_source<Source>()`, of a type
// with the graph: graphs that are equal in it need not be asked further.
namespace kept {
// Their kinds, axes and specs, in order. A pass that writes a graph anew may leave out what nobody reads, collectives too.
struct collectives {
  template <class Source>
  static constexpr passes::collective_order of_source() {
    if constexpr (requires { requires Source::all_live; }) return passes::order_of(Source::value);
    else return passes::order_of(Source::value, passes::live_marks<Source>.live);
  }
  template <class Before, class After>
  static constexpr bool holds(const Before& a, const After& b) {
    return of_live(a) == of_live(b);
  }

 private:
  template <class Graph>
  static constexpr passes::collective_order of_live(const Graph& g) {
    return passes::order_of(g, passes::detail::marked(g).live);
  }
};
struct updates {  // of parameters
  template <class Graph>
  static constexpr int of(const Graph& g) {
    int n = 0;
    for (int i = 0; i < g.node_count; ++i) n += is_update(g.nodes[i].op) ? 1 : 0;
    return n;
  }
  template <class Before, class After>
  static constexpr bool holds(const Before& a, const After& b) {
    return of(a) == of(b);
  }
};
struct outputs {  // their number, extents and placements, and how they are stored
  template <class Before, class After>
  static constexpr bool holds(const Before& a, const After& b) {
    bool same = a.output_count == b.output_count;
    for (int k = 0; same && k < a.output_count; ++k) same = a.spec_of(a.outputs[k]) == b.spec_of(b.outputs[k]);
    return same;
  }
};
struct output_values {  // the same, however they are stored
  template <class Before, class After>
  static constexpr bool holds(const Before& a, const After& b) {
    bool same = a.output_count == b.output_count;
    for (int k = 0; same && k < a.output_count; ++k)
      same = contiguous(a.spec_of(a.outputs[k])) == contiguous(b.spec_of(b.outputs[k]));
    return same;
  }
};
}  // namespace kept

namespace detail {

// What a pass declares, or what it means to declare nothing.
template <template <class> class Declared, class P, class Default>
struct declared_or {
  using type = Default;
};
template <template <class> class Declared, class P, class Default>
  requires requires { typename Declared<P>; }
struct declared_or<Declared, P, Default> {
  using type = Declared<P>;
};
template <class P>
using prerequisites_in = typename P::prerequisites;
template <class P>
using apply_after_in = typename P::apply_after;
template <class P>
using preserves_in = typename P::preserves;
template <class P>
using key_in = typename P::key;
template <class G>
using applied_in = typename G::applied;

template <class P>
using prerequisites_of = declared_or<prerequisites_in, P, passes_list<>>;
template <class P>
using apply_after_of = declared_or<apply_after_in, P, passes_list<>>;
template <class P>
using preserved_by = declared_or<preserves_in, P, passes_list<>>;
template <class P>
using key_of = declared_or<key_in, P, P>;
template <class G>
using applied_to = declared_or<applied_in, G, passes_list<>>;

template <class P, class List>
inline constexpr bool is_listed = false;
template <class P, class... Q>
inline constexpr bool is_listed<P, passes_list<Q...>> =
    (std::is_same_v<typename key_of<P>::type, typename key_of<Q>::type> || ...);

template <class... Lists>
struct joined {
  using type = passes_list<>;
};
template <class... P>
struct joined<passes_list<P...>> {
  using type = passes_list<P...>;
};
template <class... P, class... Q, class... Rest>
struct joined<passes_list<P...>, passes_list<Q...>, Rest...> : joined<passes_list<P..., Q...>, Rest...> {};

template <template <class...> class To, class List>
struct as;
template <template <class...> class To, class... P>
struct as<To, passes_list<P...>> {
  using type = To<P...>;
};

// The applied passes that declare to come after P.
template <class P, class Applied>
struct later_of;
template <class P, class... Q>
struct later_of<P, passes_list<Q...>>
    : joined<std::conditional_t<is_listed<P, typename apply_after_of<Q>::type>, passes_list<Q>, passes_list<>>...> {};

template <class Needed, class Applied>
struct missing_of;
template <class... Q, class Applied>
struct missing_of<passes_list<Q...>, Applied>
    : joined<std::conditional_t<is_listed<Q, Applied>, passes_list<>, passes_list<Q>>...> {};

template <class P, class Source>
concept has_run = requires { typename P::template run<Source>; };
template <class P, class Source>
concept has_apply = requires(graph_type_of<Source>& g) { P::apply(g); };

template <class P>
inline constexpr bool admits_mutation = requires { typename P::admits_mutation; };
template <class Source>
inline constexpr bool is_written = [] {
  if constexpr (graph_source<Source>) return has_mutation(Source::value);
  else return false;
}();

// The first reason against applying P to Source, in this order: no pass or graph, twice, order, prerequisites, writes.
template <class P, class Source, class Applied>
struct objection {
  using later = typename later_of<P, Applied>::type;
  using missing = typename missing_of<typename prerequisites_of<P>::type, Applied>::type;
  static constexpr problem what = [] {
    if (!pass<P>) return problem::pass_not_a_pass;
    if (!graph_source<Source>) return problem::pass_not_a_graph;
    if (is_listed<P, Applied>) return problem::pass_twice;
    if (!std::is_same_v<later, passes_list<>>) return problem::pass_too_late;
    if (!std::is_same_v<missing, passes_list<>>) return problem::pass_prerequisites;
    if (!admits_mutation<P> && is_written<Source>) return problem::mutation_left;
    return problem::none;
  }();
  using reason = std::conditional_t<
      what == problem::none, pass_order::fine,
      std::conditional_t<
          what == problem::pass_not_a_pass, pass_order::not_a_pass,
          std::conditional_t<
              what == problem::pass_not_a_graph, pass_order::not_a_graph,
              std::conditional_t<
                  what == problem::pass_twice, pass_order::twice,
                  std::conditional_t<
                      what == problem::pass_too_late, typename as<pass_order::must_precede, later>::type,
                      std::conditional_t<what == problem::mutation_left, pass_order::must_follow<functionalise>,
                                         typename as<pass_order::missing_prerequisite, missing>::type>>>>>>;
};

}  // namespace detail

}  // namespace shardwise::inline v0_1
