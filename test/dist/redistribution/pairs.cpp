// SPDX-License-Identifier: Apache-2.0
// Typed redistribution to whole placement lists keeps the tensor bitwise, at once and as a program, sends the bytes that
// its constants say, and has the gradient of the identity.
#include <doctest/doctest.h>

#include <algorithm>
#include <both_ways.hpp>
#include <mutex>

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

template <class... P>
struct list {};
template <class Mesh, class P>
struct named;
template <class... Axis, class... P>
struct named<sw::mesh<Axis...>, list<P...>> {
  template <class Shape>
  using tensor = sw::dtensor_of<double, Shape, sw::mesh<Axis...>, P...>;
  template <sw::redistribution_policy Policy>
  static constexpr auto move(const auto& x) {
    return sw::redistribute<Policy, on<Axis, P>...>(x);
  }
};

constexpr double value_at(std::int64_t i) { return static_cast<double>((i * 37 + 11) % 101) - 40; }

// A rank's block of the tensor whose element i is value_at(i), with shares that differ where it is partial; all whole
// numbers, so that sums are exact in any order.
template <class X, class Rank>
X made(const sw::eager<Rank>& on, Rank& rank) {
  const auto c = rank.coordinate();
  const sw::runtime::layout l = sw::runtime::local_layout(X::sp, c.data());
  std::vector<double> block(static_cast<std::size_t>(l.numel()));
  sw::runtime::each_element(l, [&](std::int64_t i, std::int64_t g) {
    double v = value_at(g);
    for (int a = 0; a < X::sp.axes; ++a) {
      const sw::placement p = X::sp.place[a];
      const int n = X::sp.axis_size[a], k = c[static_cast<std::size_t>(a)];
      if (!p.is_partial()) continue;
      if (p.op == reduction::sum) v = k > 0 ? 3.0 * k + static_cast<double>(g % 5) : v - 3.0 * n * (n - 1) / 2 - static_cast<double>((n - 1) * (g % 5));
      if (p.op == reduction::avg) v += 2 * k - (n - 1);
      if (p.op == reduction::max) v -= g % n == k ? 0 : 1 + k;
      if (p.op == reduction::min) v += g % n == k ? 0 : 1 + k;
    }
    block[static_cast<std::size_t>(i)] = v;
  });
  return X::from_local(on, block);
}

template <class X>
bool is_the_tensor(const X& x) {
  const auto whole = x.full_tensor();
  bool same = true;
  std::int64_t i = 0;
  for (const double v : whole.to_local().data) same = same && v == value_at(i++);
  return same && i == sw::numel(X::sp);
}

template <class Mesh, class To, sw::redistribution_policy Policy>
struct moves {
  constexpr auto operator()(const auto& x) const { return named<Mesh, To>::template move<Policy>(x); }
};
template <class Mesh, class To, sw::redistribution_policy Policy>
struct weighs {
  constexpr auto operator()(const auto& x, const auto& w) const {
    return named<Mesh, To>::template move<Policy>(x) * w;
  }
};

// A factor of the tensor beside which a placement may stand.
template <class P>
struct beside {
  using type = P;
};
template <>
struct beside<P> {
  using type = U;
};

int pairs = 0;

template <class Mesh, class Shape, class From, class To, sw::redistribution_policy Policy = late>
void keeps() {
  using X = typename named<Mesh, From>::template tensor<Shape>;
  using Y = typename named<Mesh, To>::template tensor<Shape>;
  using constants = sw::redistribution<X, Y, Policy>;
  ++pairs;
  std::mutex gate;
  std::int64_t most = 0;
  sw::launch<Mesh>([&](auto& rank) {
    sw::eager on(rank);
    const X x = made<X>(on, rank);
    CHECK(is_the_tensor(x));
    rank.reset_counts();
    const auto y = moves<Mesh, To, Policy>{}(x);
    std::int64_t sent = 0;
    for (int a = 0; a < Mesh::axes; ++a) {
      CHECK(rank.bytes_written(a) == constants::bytes_of(rank.index(), a));
      sent += rank.bytes_written(a);
    }
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>, Y>);
    CHECK(is_the_tensor(y));
    both_ways<moves<Mesh, To, Policy>>(rank, x);
    {
      const std::lock_guard lock(gate);
      most = std::max(most, sent);
    }
  });
  CHECK(most == constants::bytes);
}

template <class To>
struct weight_of;
template <class... P>
struct weight_of<list<P...>> {
  using type = list<typename beside<P>::type...>;
};

// d sum(x * w) / dx is w, wherever x goes before it is weighed.
template <class Mesh, class Shape, class From, class To, sw::redistribution_policy Policy = late>
void has_gradient() {
  using X = typename named<Mesh, From>::template tensor<Shape>;
  using W = typename named<Mesh, typename weight_of<To>::type>::template tensor<Shape>;
  keeps<Mesh, Shape, From, To, Policy>();
  sw::launch<Mesh>([&](auto& rank) {
    sw::eager on(rank);
    const X x = made<X>(on, rank);
    const W w = made<W>(on, rank);
    const auto results = gradients_both_ways<weighs<Mesh, To, Policy>, 0>(rank, x, w);
    const auto& dx = std::get<1>(results);
    static_assert(std::remove_cvref_t<decltype(dx)>::sp == sw::contiguous(sw::dual(X::sp)));
    CHECK(is_the_tensor(dx));
  });
}

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
