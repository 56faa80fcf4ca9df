// SPDX-License-Identifier: Apache-2.0
// pipeline: user passes over a whole step, run in order between differentiation and memory planning.
#pragma once

#include <type_traits>

#include <shardwise/graph/verify/located.hpp>
#include <shardwise/graph/stage.hpp>
#include <shardwise/graph/verify/verify.hpp>
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
// compares what each graph has by itself, `of(graph)` gives that, once for each graph of a pipeline.
namespace kept {
struct collectives {  // their kinds, axes and specs, in order
  template <class Graph>
  static constexpr passes::collective_order of(const Graph& g) {
    return passes::order_of(g);
  }
  template <class Before, class After>
  static constexpr bool holds(const Before& a, const After& b) {
    return of(a) == of(b);
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

template <problem What, class P, class Source, class Applied, class Reason>
struct explain_pass {
  static constexpr bool ok = raise<What, P>::ok;
};
template <class P, class Source, class Applied, class Reason>
struct explain_pass<problem::pass_not_a_graph, P, Source, Applied, Reason> {
  static constexpr bool ok = raise<problem::pass_not_a_graph, P, Source>::ok;
};
template <class P, class Source, class Applied, class Reason>
struct explain_pass<problem::mutation_left, P, Source, Applied, Reason> {
  static constexpr bool ok = no_mutation<Source, P, Reason>::ok;
};
template <class P, class Source, class Applied, class Reason>
struct explain_pass<problem::pass_too_late, P, Source, Applied, Reason> {
  static constexpr bool ok = raise<problem::pass_too_late, P, Reason>::ok;
};
template <class P, class Source, class Applied, class Reason>
struct explain_pass<problem::pass_prerequisites, P, Source, Applied, Reason> {
  static constexpr bool ok =
      raise<problem::pass_prerequisites, P, Reason, typename as<pass_order::applied_passes, Applied>::type>::ok;
};

// The verifier in stages: a rule costs up to some thousand steps of evaluation. Before: the `verified` of the graph that the
// pass was given, or void.
template <class Before = void>
struct verify_stages {
  struct progress {
    finding found;
    int cursor;
    int specs;  // the first of Before's that the graph has, too
    checked_applications memory;
  };
  template <class Source>
  using state = progress;
  static constexpr int per_stage(int nodes) { return nodes / 8 > 0 ? nodes / 8 : 1; }
  template <class Source>
  static constexpr int stages(int nodes) {
    return (graph_type_of<Source>::node_capacity + per_stage(nodes) - 1) / per_stage(nodes);
  }
  template <class Source>
  static constexpr void start(progress& st) {
    st.found = {};
    st.cursor = st.specs = 0;
    if constexpr (!std::is_void_v<Before>) {
      const int count =
          Source::value.spec_count < Before::graph.spec_count ? Source::value.spec_count : Before::graph.spec_count;
      while (st.specs < count && Source::value.hashes[st.specs] == Before::graph.hashes[st.specs] &&
             Source::value.specs[st.specs] == Before::graph.specs[st.specs])
        ++st.specs;
    }
  }
  template <class Source>
  static constexpr void advance(progress& st, int nodes) {
    const int count = Source::value.node_count;
    const int end = st.cursor + per_stage(nodes) < count ? st.cursor + per_stage(nodes) : count;
    if (!st.found) st.found = verify(Source::value, st.cursor, end, st.memory, known(st.specs));
    st.cursor = end;
  }

 private:
  static constexpr auto known(int specs) {
    if constexpr (std::is_void_v<Before>) return nothing_verified{};
    else return verified_graph<std::remove_cvref_t<decltype(Before::graph)>>{Before::graph, Before::memory, specs};
  }
};
// What the verification of a pass's result found, and what it leaves to that of the next one.
template <class Source, class Before>
struct verified {
  static constexpr const auto& graph = Source::value;
  static constexpr const auto& found = staged<verify_stages<Before>, Source>::value.found;
  static constexpr const auto& memory = staged<verify_stages<Before>, Source>::value.memory;
};

// A graph function on a constant.
template <class P, class Source>
struct applied_function {
  static constexpr auto value = [] {
    auto g = Source::value;
    const finding f = P::apply(g);
    if (f && !g.error) g.error = f;
    return g;
  }();
};

template <class P, class Source>
struct pass_result {
  using type = Source;
  static constexpr problem what = problem::pass_not_a_pass;
};
// What a pass says of itself is not believed: its result is dropped only where it is the very graph that was given.
template <class Run, class Source>
inline constexpr bool is_unchanged = [] {
  if constexpr (requires { requires Run::unchanged; } && std::is_same_v<decltype((Run::value)), decltype((Source::value))>)
    return is_same_object(&Run::value, &Source::value);
  else return false;
}();
template <class P, class Source>
  requires(has_run<P, Source>)
struct pass_result<P, Source> {
  using run = typename P::template run<Source>;
  using type = std::conditional_t<is_unchanged<run, Source>, Source, run>;
  static constexpr problem what = problem::none;
};
template <class P, class Source>
  requires(!has_run<P, Source> && has_apply<P, Source>)
struct pass_result<P, Source> {
  using type = applied_function<P, Source>;
  static constexpr problem what = problem::none;
};

// Whether a property of a graph, one that has `of(graph)`, is kept: each graph's own is one constant, whatever passes stand on
// either side of it.
template <class Property, class Source>
inline constexpr auto property_of = Property::of(Source::value);
template <class Property, class Source>
concept has_property = requires { Property::of(Source::value); };
template <class Property, class Before, class After>
inline constexpr bool is_kept = [] {
  if constexpr (has_property<Property, Before>) return property_of<Property, Before> == property_of<Property, After>;
  else return Property::holds(Before::value, After::value);
}();

template <class Before, class After, class P, class List>
struct promises;
template <class Before, class After, class P, class... Property>
struct promises<Before, After, P, passes_list<Property...>> {
  static constexpr bool ok =
      (true && ... &&
       raise<(is_kept<Property, Before, After> ? problem::none : problem::pass_broke_promise), P, Property>::ok);
};

template <class P>
concept verified_with_next = requires { typename P::verified_with_next; };

// P on Source after the passes Applied. Where it fails, `type` is Source and `good` false, so that one mistake is one
// error. Before: what is known of Source or of a graph before it, a `verified` or void; `known`: of `type`. Later: the result is
// verified with a later pass's.
template <class P, class Source, class Applied, class Before, bool Admitted, bool Later = false>
struct checked_pass {
  using type = Source;
  using known = Before;
  static constexpr bool good = false;
};
template <class P, class Source, class Applied, class Before, bool Later>
struct checked_pass<P, Source, Applied, Before, true, Later> {
  using outcome = pass_result<P, Source>;
  using result = typename outcome::type;
  static_assert(raise<outcome::what, P>::ok);
  // between passes: the one that refused, or that broke an invariant, is named
  static constexpr finding found = [] {
    if constexpr (Later || std::is_same_v<result, Source>) return finding(result::value.error);
    else return result::value.error ? finding(result::value.error) : verified<result, Before>::found;
  }();
  static constexpr bool good = outcome::what == problem::none && (!found || Source::value.error);
  // what a pass refuses is a node of the graph that it was given, what is wrong with its result one of that
  using about = std::conditional_t<static_cast<bool>(result::value.error), Source, result>;
  static_assert(
      refused_at<(Source::value.error ? problem::none : found.what), found.have, found.want, about, found.operand, P>::ok);
  using type = std::conditional_t<good, result, Source>;
  using known =
      std::conditional_t<good && !found && !Later && !std::is_same_v<result, Source>, verified<result, Before>, Before>;
  static_assert(promises<Source, type, P, typename preserved_by<P>::type>::ok);
};

template <class P, class Source, class Applied, class Before = void, bool Later = false>
struct one_pass {
  using check = objection<P, Source, Applied>;
  static_assert(explain_pass<check::what, P, Source, Applied, typename check::reason>::ok);
  using done = checked_pass<P, Source, Applied, Before, check::what == problem::none, Later>;
};

template <class Applied, class P>
struct appended;
template <class... Q, class P>
struct appended<passes_list<Q...>, P> {
  using type = passes_list<Q..., P>;
};

// A row of passes whose results have not been verified yet, and what they began with.
template <class Source, class Applied, class Before, class Passes>
struct unverified {};
struct all_verified {};
template <class Row, class P, class Source, class Applied, class Before>
struct row_with {
  using type = unverified<Source, Applied, Before, pipeline<P>>;
};
template <class First, class Applied0, class Before0, class... Q, class P, class Source, class Applied, class Before>
struct row_with<unverified<First, Applied0, Before0, pipeline<Q...>>, P, Source, Applied, Before> {
  using type = unverified<First, Applied0, Before0, pipeline<Q..., P>>;
};

// Together: passes may be verified with the next one.
template <class Source, class Pipeline, class Applied = passes_list<>, class Before = void, class Row = all_verified,
          bool Together = true>
struct run_pipeline;

// The graph behind a row: verified, or, where something is wrong with it, what is left of it when each pass answers for its own.
template <class Source, class Before, class Row>
struct end_of_row {
  using type = Source;
  using known = Before;
};
template <class Source, class Before, class First, class Applied, class Known, class Passes>
struct end_of_row<Source, Before, unverified<First, Applied, Known, Passes>> {
  using last = verified<Source, Before>;
  static constexpr bool good = Source::value.error || !last::found;
  template <bool Good, class = void>
  struct result {
    using type = Source;
    using known = last;
  };
  template <class T>
  struct result<false, T> {
    using type = typename run_pipeline<First, Passes, Applied, Known, all_verified, false>::type;
    using known = Known;
  };
  using type = typename result<good>::type;
  using known = typename result<good>::known;
};

template <class Source, class Applied, class Before, class Row, bool Together>
struct run_pipeline<Source, pipeline<>, Applied, Before, Row, Together> {
  using type = typename end_of_row<Source, Before, Row>::type;
};
template <class Source, class P, class... Rest, class Applied, class Before, class Row, bool Together>
struct run_pipeline<Source, pipeline<P, Rest...>, Applied, Before, Row, Together> {
  using before = end_of_row<Source, Before, Row>;
  using done = typename one_pass<P, typename before::type, Applied, typename before::known>::done;
  using next = run_pipeline<typename done::type, std::conditional_t<done::good, pipeline<Rest...>, pipeline<>>,
                            typename appended<Applied, P>::type, typename done::known, all_verified, Together>;
  using type = typename next::type;
};
template <class Source, verified_with_next P, class... Rest, class Applied, class Before, class Row>
struct run_pipeline<Source, pipeline<P, Rest...>, Applied, Before, Row, true> {
  using done = typename one_pass<P, Source, Applied, Before, true>::done;
  using row = std::conditional_t<done::good && !std::is_same_v<typename done::type, Source>,
                                 typename row_with<Row, P, Source, Applied, Before>::type, Row>;
  using next = run_pipeline<typename done::type, std::conditional_t<done::good, pipeline<Rest...>, pipeline<>>,
                            typename appended<Applied, P>::type, Before, row, true>;
  using type = typename next::type;
};

// A refused graph is empty, so that the sentence is the only error.
struct empty_graph {
  static constexpr graph<1, 1> value{};
};
template <class G>
using graph_or_empty = std::conditional_t<graph_source<G>, G, empty_graph>;

}  // namespace detail

// One pass applied to a graph, outside of a step: `value` is the new graph, `applied` the passes so far. What
// train_step, forward_step and the others do with the passes of their pipeline.
template <class P, class G>
struct apply_pass {
  using done = typename detail::one_pass<P, G, typename detail::applied_to<G>::type>::done;
  static constexpr const auto& value = detail::graph_or_empty<typename done::type>::value;
  using applied = typename detail::appended<typename detail::applied_to<G>::type, P>::type;
};

// pass_order::fine, or the first reason why P cannot be applied to G, without an error.
template <class P, class G>
using why_not = typename detail::objection<P, G, typename detail::applied_to<G>::type>::reason;
template <class P, class G>
inline constexpr bool can_apply = std::is_same_v<why_not<P, G>, pass_order::fine>;

}  // namespace shardwise::inline v0_1
