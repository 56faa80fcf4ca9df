// SPDX-License-Identifier: Apache-2.0
// Redistribution to a list of placements, as types: by which collectives, at how many bytes.

#include <initializer_list>
#include <shardwise/graph/functions/functions.hpp>

#include "typed.hpp"

namespace {

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

template <class A, class B>
using at = typed<float, sw::shape<8, 4>, square, A, B>;

constexpr sw::redistribution_policy seed_era = sw::redistribution_policy::seed_era;

struct want {
  transition kind;
  int axis;
  std::int64_t bytes;
};
constexpr bool runs(const sw::redistribution_collectives& l, std::initializer_list<want> w) {
  bool same = l.size() == static_cast<int>(w.size());
  for (int k = 0; k < l.size() && same; ++k) {
    const want& x = w.begin()[k];
    same = l[k].kind == x.kind && l[k].axis == x.axis && l[k].bytes == x.bytes;
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
