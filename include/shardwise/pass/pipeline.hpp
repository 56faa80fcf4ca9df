// SPDX-License-Identifier: Apache-2.0
// pipeline: user passes over a whole step, run in order between differentiation and memory planning.
#pragma once

#include <type_traits>

#include <shardwise/graph/verify.hpp>
#include <shardwise/pass/dce.hpp>
#include <shardwise/support/diagnose.hpp>

namespace shardwise {

// A pass is a struct with a member template `run<Source>` whose `value` is the new graph (Source::value is the old one).
template <class... Passes>
struct pipeline {};

namespace detail {

template <class P>
concept graph_pass = requires { typename P::shardwise_pass; };

template <class Source, class P>
struct run_pass {
  using type = Source;
};
template <class Source, graph_pass P>
struct run_pass<Source, P> {
  using type = typename P::template run<Source>;
};

template <class Source, class Pipeline>
struct run_pipeline;
template <class Source>
struct run_pipeline<Source, pipeline<>> {
  using type = Source;
};
template <class Source, class P, class... Rest>
struct run_pipeline<Source, pipeline<P, Rest...>> {
  static_assert(raise<!graph_pass<P> ? problem::pass_not_a_pass
                      : (std::is_same_v<P, Rest> || ...) ? problem::pass_twice
                                                         : problem::none,
                      P>::ok);
  using result = typename run_pass<Source, P>::type;
  // between passes: the one that broke an invariant is named
  static constexpr finding found = verify(result::value);
  static_assert(raise<found.what, P>::ok);
  using type = typename run_pipeline<std::conditional_t<found.what == problem::none, result, Source>, pipeline<Rest...>>::type;
};

}  // namespace detail

}  // namespace shardwise
