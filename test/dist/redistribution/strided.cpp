// SPDX-License-Identifier: Apache-2.0
// Typed redistribution of strided shards, and the gradients of means: the laws of pairs.cpp.
#include <typed_pairs.hpp>

namespace {

using namespace test;
using sw::on;

template <int D>
using S = sw::shard<D>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
using Avg = sw::partial<sw::reduction::avg>;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
struct ring : sw::axis<3> {};
using square = sw::mesh<dp, tp>;
using line = sw::mesh<ring>;

using five = sw::shape<5, 3>;
using flat = sw::shape<7>;
using cube = sw::shape<3, 5, 2>;

}  // namespace

TEST_CASE("typed redistribution: strided shards, uneven and empty") {
  using after = sw::strided_shard<0, 2>;
  has_gradient<square, five, list<after, S<0>>, list<R, S<0>>>();
  has_gradient<square, five, list<P, S<0>>, list<after, S<0>>>();
  has_gradient<square, five, list<U, S<0>>, list<after, S<0>>>();
  has_gradient<square, flat, list<after, S<0>>, list<S<0>, S<0>>>();
  has_gradient<square, flat, list<S<0>, S<0>>, list<after, S<0>>>();
  has_gradient<square, cube, list<sw::strided_shard<1, 2>, S<1>>, list<S<2>, S<1>>>();
  keeps<square, sw::shape<3>, list<after, S<0>>, list<R, U>>();
  keeps<square, sw::shape<0, 4>, list<after, S<0>>, list<S<1>, S<0>>>();
  // negative dims count from the end
  sw::launch<square>([](auto& rank) {
    sw::eager run(rank);
    const auto x = sw::dtensor_of<double, five, square>::full(run, 1);
    const auto y = sw::redistribute<on<dp, sw::strided_shard<-2, 2>>, on<tp, sw::shard<-2>>>(x);
    using counted_from_front = sw::dtensor_of<double, five, square, sw::strided_shard<0, 2>, S<0>>;
    CHECK(std::is_same_v<std::remove_const_t<decltype(y)>, counted_from_front>);
  });
}

TEST_CASE("typed redistribution: the gradient of a mean") {
  has_gradient<line, five, list<Avg>, list<R>>();
  has_gradient<line, five, list<Avg>, list<U>>();
  has_gradient<line, five, list<Avg>, list<S<1>>>();
  has_gradient<square, five, list<Avg, S<0>>, list<R, S<0>>>();
  has_gradient<square, five, list<Avg, P>, list<S<0>, R>>();
  has_gradient<square, flat, list<Avg, Avg>, list<U, S<0>>>();
}
