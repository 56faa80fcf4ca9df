// SPDX-License-Identifier: Apache-2.0
// Redistribution to a list of placements, as types: what arrives.

#include <shardwise/graph/functions/functions.hpp>

#include "typed.hpp"

namespace {

using sw::on;
template <int D>
using S = sw::shard<D>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using square = sw::mesh<dp, tp>;

template <class A, class B>
using at = typed<float, sw::shape<8, 4>, square, A, B>;

constexpr sw::redistribution_policy seed_era = sw::redistribution_policy::seed_era;

template <class From0, class From1, class A, class B>
constexpr bool arrives() {
  using X = at<From0, From1>;
  using there = decltype(sw::redistribute<on<dp, A>, on<tp, B>>(X{}));
  using early = decltype(sw::redistribute<seed_era, on<tp, B>, on<dp, A>>(X{}));
  return std::is_same_v<there, at<A, B>> && std::is_same_v<early, there>;
}
static_assert(arrives<S<0>, S<0>, R, S<0>>() && arrives<R, S<0>, S<0>, S<0>>() && arrives<S<0>, S<1>, S<1>, S<0>>() &&
              arrives<S<0>, S<0>, S<0>, S<0>>());
static_assert(arrives<P, P, S<0>, S<0>>() && arrives<P, S<0>, S<0>, U>() && arrives<R, U, P, S<1>>());

template <class From0, class From1, class To0, class To1, class... Named>
constexpr bool becomes() {
  return std::is_same_v<decltype(sw::redistribute<Named...>(at<From0, From1>{})), at<To0, To1>>;
}
// an axis that is not named keeps its placement; negative dims count from the end
static_assert(becomes<S<0>, S<0>, S<0>, R, on<tp, R>>());
static_assert(becomes<S<0>, R, S<1>, S<0>, on<dp, sw::shard<-1>>, on<tp, sw::even<sw::shard<-2>>>>());
// the outer of two axes that shard one dim, which one axis at a time refuses
static_assert(becomes<S<0>, S<0>, R, S<0>, on<dp, R>>());
// nothing to do is the tensor itself
static_assert(becomes<S<0>, P, S<0>, P, on<dp, S<0>>, on<tp, P>>());

}  // namespace
