// SPDX-License-Identifier: Apache-2.0
// Redistribution to a list of placements, as types: what arrives, by which collectives, at how many bytes.

#include <shardwise/graph/functions.hpp>

#include "typed.hpp"

namespace {

using sw::on;
using sw::transition;
template <int D>
using S = sw::shard<D>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct ring : sw::axis<3> {};
using square = sw::mesh<dp, tp>;

template <class A, class B, class Shape = sw::shape<8, 4>>
using at = typed<float, Shape, square, A, B>;

constexpr auto seed_era = sw::redistribution_policy::seed_era;

// --- what arrives ----------------------------------------------------------------------------------------------------

template <class X, class A, class B>
constexpr bool arrives() {
  using there = decltype(sw::redistribute<on<dp, A>, on<tp, B>>(X{}));
  using early = decltype(sw::redistribute<seed_era, on<tp, B>, on<dp, A>>(X{}));
  return std::is_same_v<there, at<A, B>> && std::is_same_v<early, there>;
}
static_assert(arrives<at<S<0>, S<0>>, R, S<0>>() && arrives<at<R, S<0>>, S<0>, S<0>>() &&
              arrives<at<S<0>, S<1>>, S<1>, S<0>>() && arrives<at<S<0>, S<0>>, S<0>, S<0>>());
static_assert(arrives<at<P, P>, S<0>, S<0>>() && arrives<at<P, S<0>>, S<0>, U>() && arrives<at<R, U>, P, S<1>>());

// an axis that is not named keeps its placement; negative dims count from the end
static_assert(std::is_same_v<decltype(sw::redistribute<on<tp, R>>(at<S<0>, S<0>>{})), at<S<0>, R>>);
static_assert(std::is_same_v<decltype(sw::redistribute<on<dp, S<-1>>, on<tp, sw::even<S<-2>>>>(at<S<0>, R>{})), at<S<1>, S<0>>>);
// the outer of two axes that shard one dim, which one axis at a time refuses
static_assert(std::is_same_v<decltype(sw::redistribute<on<dp, R>>(at<S<0>, S<0>>{})), at<R, S<0>>>);
// nothing to do is the tensor itself
static_assert(std::is_same_v<decltype(sw::redistribute<on<dp, S<0>>, on<tp, P>>(at<S<0>, P>{})), at<S<0>, P>>);

// --- collectives and bytes -------------------------------------------------------------------------------------------

struct want {
  transition kind;
  int axis;
  std::int64_t bytes;
};
template <class List, std::size_t N>
constexpr bool runs(const List& l, const want (&w)[N]) {
  bool same = l.size() == static_cast<int>(N);
  for (std::size_t k = 0; k < N && same; ++k) {
    const auto& c = l[static_cast<int>(k)];
    same = c.kind == w[k].kind && c.axis == w[k].axis && c.bytes == w[k].bytes;
  }
  return same;
}
constexpr auto gather = transition::all_gather, scatter = transition::reduce_scatter;
constexpr auto exchange = transition::all_to_all, reduce = transition::all_reduce;

// 8 x 4 floats: a quarter is 32 bytes
using unnest = sw::redistribution<at<S<0>, S<0>>, at<R, S<0>>>;
static_assert(runs(unnest::collectives, {{gather, 1, 32}, {gather, 0, 64}}) && unnest::bytes == 96);
using swap = sw::redistribution<at<S<0>, S<1>>, at<S<1>, S<0>>>;
static_assert(runs(swap::collectives, {{gather, 1, 32}, {exchange, 0, 32}}) && swap::bytes == 64);
using swap_then = sw::redistribution<at<S<0>, S<1>>, at<S<1>, S<0>>, seed_era>;
static_assert(runs(swap_then::collectives, {{gather, 1, 32}, {gather, 0, 64}}) && swap_then::bytes == 96);
using spread = sw::redistribution<at<P, P>, at<S<0>, S<0>>>;
static_assert(runs(spread::collectives, {{scatter, 0, 64}, {scatter, 1, 32}}) && spread::bytes == 96);
static_assert(spread::bytes_of(3, 0) == 64 && spread::bytes_of(3, 1) == 32);
using agreed = sw::redistribution<at<P, R>, at<R, R>>;
static_assert(runs(agreed::collectives, {{reduce, 0, 128}}) && agreed::bytes == 128);
using free_of_charge = sw::redistribution<at<R, U>, at<S<0>, P>>;
static_assert(free_of_charge::collectives.size() == 0 && free_of_charge::bytes == 0);

// 5 rows over 3 ranks: 2, 2, 1
using line = sw::mesh<ring>;
using rows = sw::redistribution<typed<float, sw::shape<5, 3>, line, S<0>>, typed<float, sw::shape<5, 3>, line, R>>;
static_assert(rows::bytes == 2 * 24 && rows::bytes_of(1) == 2 * 24 && rows::bytes_of(2) == 2 * 12);

}  // namespace
