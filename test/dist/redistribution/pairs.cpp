// SPDX-License-Identifier: Apache-2.0
// Typed redistribution to whole placement lists keeps the tensor bitwise, at once and as a program, sends the bytes that
// its constants say, and has the gradient of the identity.
#include <doctest/doctest.h>

#include <algorithm>
#include <mutex>
#include <typed_pairs.hpp>

namespace {

using namespace test;
using sw::on;
using sw::reduction;

template <int D>
using S = sw::shard<D>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
using Avg = sw::partial<reduction::avg>;
using Max = sw::partial<reduction::max>;
using Min = sw::partial<reduction::min>;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct ring : sw::axis<3> {};
using square = sw::mesh<dp, tp>;
using line = sw::mesh<ring>;
constexpr auto late = sw::redistribution_policy::late, seed_era = sw::redistribution_policy::seed_era;

using five = sw::shape<5, 3>;
using flat = sw::shape<7>;
using cube = sw::shape<3, 5, 2>;

}  // namespace

TEST_CASE("typed redistribution: four ranks, two axes, uneven extents") {
  pairs = 0;
  has_gradient<square, five, list<S<0>, S<0>>, list<R, S<0>>>();
  has_gradient<square, five, list<S<0>, S<1>>, list<S<1>, S<0>>>();
  has_gradient<square, five, list<R, S<0>>, list<S<0>, S<0>>>();
  has_gradient<square, five, list<P, S<0>>, list<S<0>, U>>();
  has_gradient<square, five, list<P, P>, list<S<1>, S<1>>>();
  has_gradient<square, five, list<R, U>, list<P, S<1>>>();
  keeps<square, flat, list<S<0>, S<0>>, list<R, R>>();
  keeps<square, flat, list<S<0>, S<0>>, list<S<0>, R>>();
  keeps<square, flat, list<P, R>, list<R, S<0>>>();
  keeps<square, flat, list<P, P>, list<U, R>>();
  keeps<square, cube, list<S<2>, S<1>>, list<S<1>, S<1>>>();
  keeps<square, cube, list<S<1>, S<1>>, list<S<0>, S<2>>>();
  keeps<square, cube, list<S<0>, P>, list<R, S<0>>>();
  keeps<square, cube, list<R, S<2>>, list<P, R>>();
  CHECK(pairs == 14);
}

TEST_CASE("typed redistribution: blocks, nested in both spellings") {
  keeps<square, sw::shape<12, 3>, list<sw::shard<0, 4>, S<0>>, list<S<0>, sw::shard<0, 2>>>();
  keeps<square, sw::shape<12, 3>, list<S<0>, S<0>>, list<sw::shard<0, 4>, S<0>>>();
  keeps<square, sw::shape<16>, list<sw::shard<0, 4>, S<0>>, list<S<0>, R>>();
}

TEST_CASE("typed redistribution: reductions other than sum") {
  keeps<square, five, list<Max, S<1>>, list<S<1>, R>>();
  keeps<square, five, list<Avg, P>, list<R, S<0>>>();
  keeps<square, five, list<R, S<0>>, list<Min, S<1>>>();
  keeps<line, five, list<Avg>, list<S<0>>>();
  keeps<line, five, list<Max>, list<R>>();
  keeps<line, five, list<R>, list<Avg>>();
}

TEST_CASE("typed redistribution: three ranks, which divide no dim") {
  has_gradient<line, five, list<S<0>>, list<S<1>>>();
  has_gradient<line, five, list<P>, list<S<0>>>();
  has_gradient<line, five, list<S<1>>, list<U>>();
  keeps<line, five, list<R>, list<P>>();
  keeps<line, flat, list<S<0>>, list<R>>();
  keeps<line, flat, list<P>, list<R>>();
}

TEST_CASE("typed redistribution: the seed era's order") {
  has_gradient<square, five, list<S<0>, S<1>>, list<S<1>, S<0>>, seed_era>();
  has_gradient<square, five, list<P, S<1>>, list<R, S<1>>, seed_era>();
  keeps<square, flat, list<S<0>, S<0>>, list<R, S<0>>, seed_era>();
}

// replicate to partial by dividing: of 8 on four ranks each holds 2, and their sum is 8 again
struct four : sw::axis<4> {};
TEST_CASE("typed redistribution: the seed era's shares") {
  using mesh = sw::mesh<four>;
  using X = sw::dtensor_of<float, sw::shape<3>, mesh, R>;
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const X x = X::full(on, 8);
    rank.reset_counts();
    const auto y = moves<mesh, list<P>, seed_era>{}(x);
    for (const float v : y.to_local().data) CHECK(v == 2);
    const auto kept = moves<mesh, list<P>, late>{}(x);
    for (const float v : kept.to_local().data) CHECK(v == (rank.index() == 0 ? 8 : 0));
    CHECK(rank.bytes_written(0) == 0);
    both_ways<moves<mesh, list<P>, seed_era>>(rank, x);
    for (const float v : sw::redistribute<four, R>(y).to_local().data) CHECK(v == 8);
  });
  has_gradient<mesh, five, list<R>, list<P>, seed_era>();
  has_gradient<mesh, five, list<U>, list<P>, seed_era>();
  // and no collective is spent on the gradient
  using D = sw::dtensor_of<double, five, mesh, R>;
  using W = sw::dtensor_of<double, five, mesh, U>;
  static_assert(gradient_of<weighs<mesh, list<P>, seed_era>, sw::wrt<0>, D, W>::traffic.collectives == 0);
}
