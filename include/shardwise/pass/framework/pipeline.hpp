// SPDX-License-Identifier: Apache-2.0
// pipeline: user passes over a whole step, run in order between differentiation and memory planning.
#pragma once

#include <shardwise/graph/stage.hpp>
#include <shardwise/graph/verify/located.hpp>
#include <shardwise/graph/verify/verify.hpp>
#include <shardwise/pass/framework/dce.hpp>
#include <shardwise/pass/framework/pass.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

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

// Whether a property of a graph, one that has `of(graph)` or `of_source`, is kept: each graph's own is one constant, whatever passes
// stand on either side of it.
template <class Property, class Source>
concept has_source_property = requires { Property::template of_source<Source>(); };
template <class Property, class Source>
concept has_property = has_source_property<Property, Source> || requires { Property::of(Source::value); };
template <class Property, class Source>
inline constexpr auto property_of = [] {
  if constexpr (has_source_property<Property, Source>) return Property::template of_source<Source>();
  else return Property::of(Source::value);
}();
template <class Property, class Before, class After>
inline constexpr bool equal_property = false;
template <class Property, class Before, class After>
  requires has_property<Property, Before>
inline constexpr bool equal_property<Property, Before, After> =
    property_of<Property, Before> == property_of<Property, After>;
template <class Property, class Before, class After>
inline constexpr bool is_kept = [] {
  if constexpr (equal_property<Property, Before, After>) return true;
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
