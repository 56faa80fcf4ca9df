// SPDX-License-Identifier: Apache-2.0
// Norms over dims, sharded or not: what ranks hold is a partial norm, collectives make the norm of it, and its gradient,
// where it has one, is one device's.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <cmath>

namespace {

using namespace test;
using R = sw::replicate;
using U = sw::reduced;
template <int D>
using S = sw::shard<D>;
template <int P>
using N = sw::partial_norm<P>;

struct dp : sw::axis<2> {};
template <int Ranks>
struct ring : sw::axis<Ranks> {};
template <int Ranks>
using line = sw::mesh<ring<Ranks>>;
using grid = sw::mesh<dp, ring<3>>;
using numbers = std::vector<double>;

double element_at(std::int64_t i) { return static_cast<double>(i * 29 % 17 - 8) / 4; }
double weight_at(std::int64_t i) { return static_cast<double>(i * 5 % 7 - 2); }

template <class X>
X filled(const auto& on, double (*f)(std::int64_t)) {
  numbers whole;
  for (std::int64_t i = 0; i < sw::numel(X::sp); ++i) whole.push_back(f(i));
  return X::distribute(on, whole);
}

double norm_of(const numbers& x, int p) {
  double sum = 0;
  for (const double v : x) sum += std::pow(std::abs(v), p);
  return std::pow(sum, 1.0 / p);
}

// Norms of the rows of a (Rows, 3) tensor for Dim 1, of its columns for Dim 0.
template <int Rows>
numbers expected(int p, int dim) {
  numbers all;
  for (std::int64_t kept = 0; kept < (dim == 0 ? 3 : Rows); ++kept) {
    numbers line;
    for (std::int64_t k = 0; k < (dim == 0 ? Rows : 3); ++k)
      line.push_back(element_at(dim == 0 ? k * 3 + kept : kept * 3 + k));
    all.push_back(norm_of(line, p));
  }
  return all;
}

bool close(double x, double y) { return std::abs(x - y) <= 1e-14 * std::abs(y); }

template <int P, int Dim>
struct norms {
  constexpr auto operator()(const auto& x) const { return sw::vector_norm<P, Dim>(x); }
};

template <class... P>
struct list {};
template <int Rows, class Mesh, class Given, class Arrives>
struct check;
template <int Rows, class Mesh, class... G, class... A>
struct check<Rows, Mesh, list<G...>, list<A...>> {
  template <int P, int Dim>
  static void of() {
    using X = sw::dtensor_of<double, sw::shape<Rows, 3>, Mesh, G...>;
    using Y = sw::dtensor_of<double, sw::shape<Dim == 0 ? 3 : Rows>, Mesh, A...>;
    sw::launch<Mesh>([](auto& rank) {
      sw::eager on(rank);
      const X x = filled<X>(on, element_at);
      const auto [y] = both_ways<norms<P, Dim>>(rank, x);
      static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>, Y>);
      const auto whole = y.full_tensor();
      const numbers wanted = expected<Rows>(P, Dim);
      std::size_t i = 0;
      for (const double v : whole.to_local().data) CHECK(close(v, wanted[i++]));
      CHECK(i == wanted.size());
    });
  }
};
template <int P, int Rows, int Ranks>
void on_line() {
  check<Rows, line<Ranks>, list<R>, list<R>>::template of<P, 0>();
  check<Rows, line<Ranks>, list<U>, list<U>>::template of<P, 1>();
  check<Rows, line<Ranks>, list<S<0>>, list<N<P>>>::template of<P, 0>();
  check<Rows, line<Ranks>, list<S<0>>, list<S<0>>>::template of<P, 1>();
}

struct whole {
  constexpr auto operator()(const auto& v) const { return sw::redistribute<ring<2>, R>(v); }
};
struct parts {
  constexpr auto operator()(const auto& v) const { return sw::redistribute<ring<2>, S<0>>(v); }
};

// The norms are weighed, so that each has a cotangent of its own.
template <int P, int Dim>
struct weighed {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::vector_norm<P, Dim>(x) * w; }
};

}  // namespace

TEST_CASE("vector_norm: orders, ranks, uneven and empty shards") {
  on_line<1, 5, 2>();
  on_line<2, 5, 3>();
  on_line<3, 5, 4>();  // 2, 2, 1, 0
  on_line<2, 2, 4>();
  check<7, grid, list<S<1>, S<0>>, list<N<2>, S<0>>>::of<2, 1>();
  check<7, grid, list<S<0>, S<0>>, list<N<2>, N<2>>>::of<2, 0>();
  check<7, grid, list<sw::strided_shard<0, 3>, S<0>>, list<N<3>, N<3>>>::of<3, 0>();
  check<7, grid, list<sw::strided_shard<0, 3>, S<0>>, list<sw::strided_shard<0, 3>, S<0>>>::of<3, 1>();
}

// 3 and 4 are 5, in whole and in parts; the ranks' values may have signs, and not all ranks a part
TEST_CASE("partial_norm: reduced and scattered") {
  using mesh = line<2>;
  using X = sw::dtensor_of<double, sw::shape<3>, mesh, N<2>>;
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const bool first = rank.index() == 0;
    const X x = X::from_local(on, first ? numbers{3, -5, 0} : numbers{-4, 12, 7});
    rank.reset_counts();
    const auto [y] = both_ways<whole>(rank, x);
    CHECK(values_of(y.to_local()) == numbers{5, 13, 7});
    const auto [z] = both_ways<parts>(rank, x);
    CHECK(values_of(z.to_local()) == (first ? numbers{5, 13} : numbers{7}));
    // a whole tensor under this name: the first rank holds it
    CHECK(values_of(sw::redistribute<ring<2>, R>(X::full(on, 2)).to_local()) == numbers{2, 2, 2});
    using Y = sw::dtensor_of<float, sw::shape<3>, mesh, N<1>>;
    const Y sums = Y::from_local(on, first ? std::vector<float>{3, -5, 0} : std::vector<float>{-4, 12, 7});
    CHECK(values_of(sw::redistribute<ring<2>, R>(sums).to_local()) == std::vector<float>{7, 17, 7});
  });
}

TEST_CASE("vector_norm: gradients, sharded where dims are kept; zero where the norm is") {
  using mesh = line<3>;
  using X = sw::dtensor_of<double, sw::shape<5, 3>, mesh, S<0>>;
  using W = sw::dtensor_of<double, sw::shape<5>, mesh, S<0>>;
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    // row 1 is zero
    const X x = filled<X>(on, [](std::int64_t i) { return i / 3 == 1 ? 0.0 : element_at(i); });
    const W w = filled<W>(on, weight_at);
    const auto check_order = [&]<int P>(std::integral_constant<int, P>) {
      const auto [y, dx] = gradients_both_ways<weighed<P, 1>, 0>(rank, x, w);
      const auto gradient = dx.full_tensor();
      const numbers norm = expected<5>(P, 1);
      std::int64_t i = 0;
      for (const double v : gradient.to_local().data) {
        const double e = i / 3 == 1 ? 0 : element_at(i), n = norm[static_cast<std::size_t>(i / 3)];
        const double slope = e == 0 ? 0 : std::copysign(std::pow(std::abs(e) / n, P - 1), e);
        CHECK(std::abs(v - weight_at(i / 3) * slope) <= 1e-14);
        ++i;
      }
      CHECK(i == 15);
    };
    check_order(std::integral_constant<int, 1>{});
    check_order(std::integral_constant<int, 2>{});
    check_order(std::integral_constant<int, 3>{});
  });
}
