// SPDX-License-Identifier: Apache-2.0
// Redistributions and a loss on rank threads against numbers worked by hand.
#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <cmath>

namespace {

using namespace test;

template <int D>
using S = sw::shard<D>;
using R = sw::replicate;
template <sw::reduction Op>
using Partial = sw::partial<Op>;
using numbers = std::vector<double>;
using enum sw::reduction;

struct ring : sw::axis<4> {};
struct pair : sw::axis<2> {};
struct dp : sw::axis<2> {};
template <class Shape, class Mesh, class... P>
using tensor = sw::dtensor_of<double, Shape, Mesh, P...>;

template <class Axis, class To>
struct to {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<Axis, To>(x); }
};

// Five elements, 10 r + 0 to 10 r + 4 on rank r, by a partial Op to To: what each rank has then.
template <sw::reduction Op, class To>
void five(const numbers (&wanted)[4]) {
  using mesh = sw::mesh<ring>;
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    numbers mine(5);
    for (std::size_t i = 0; i < 5; ++i) mine[i] = 10.0 * rank.index() + static_cast<double>(i);
    const auto x = tensor<sw::shape<5>, mesh, Partial<Op>>::from_local(on, mine);
    const auto [y] = both_ways<to<ring, To>>(rank, x);
    CHECK(values_of(y.to_local()) == wanted[rank.index()]);
  });
}
template <sw::reduction Op>
void five_whole(const numbers& w) {
  five<Op, R>({w, w, w, w});
}

struct loss_of {
  constexpr auto operator()(const auto& logits, const auto& target) const { return sw::cross_entropy(logits, target); }
};

}  // namespace

TEST_CASE("worked values: five elements of four ranks, reduced whole and in chunks") {
  five<sum, S<0>>({{60, 64}, {68, 72}, {76}, {}});
  five<avg, S<0>>({{15, 16}, {17, 18}, {19}, {}});
  five_whole<sum>({60, 64, 68, 72, 76});
  five_whole<avg>({15, 16, 17, 18, 19});
  five_whole<sw::reduction::max>({30, 31, 32, 33, 34});
  five_whole<sw::reduction::min>({0, 1, 2, 3, 4});
}

TEST_CASE("worked values: (5, 3) from rows to columns over two ranks") {
  using mesh = sw::mesh<pair>;
  numbers v;
  for (int i = 0; i < 5; ++i)
    for (int j = 0; j < 3; ++j) v.push_back(10 * i + j);
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<sw::shape<5, 3>, mesh, S<0>>::distribute(on, v);
    const bool first = rank.index() == 0;
    CHECK(values_of(x.to_local()) == (first ? numbers{0, 1, 2, 10, 11, 12, 20, 21, 22} : numbers{30, 31, 32, 40, 41, 42}));
    const auto [y] = both_ways<to<pair, S<1>>>(rank, x);
    CHECK(values_of(y.to_local()) == (first ? numbers{0, 1, 10, 11, 20, 21, 30, 31, 40, 41} : numbers{2, 12, 22, 32, 42}));
  });
}

TEST_CASE("worked values: eight rows nested over two by two ranks, to the inner axis alone") {
  using mesh = sw::mesh<dp, pair>;
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor<sw::shape<8>, mesh, S<0>, S<0>>::distribute(on, numbers{0, 1, 2, 3, 4, 5, 6, 7});
    const double begin = 2.0 * rank.index();
    CHECK(values_of(x.to_local()) == numbers{begin, begin + 1});
    const auto y = sw::redistribute<sw::on<dp, R>, sw::on<pair, S<0>>>(x);
    const double half = 4.0 * rank.coordinate(1);
    CHECK(values_of(y.to_local()) == numbers{half, half + 1, half + 2, half + 3});
  });
}

// Four equal logits whose classes are split over two ranks, target 3: the loss is log 4, the gradient softmax less one-hot.
TEST_CASE("worked values: a cross entropy over split classes, in implicit mode") {
  using mesh = sw::mesh<pair>;
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto logits = tensor<sw::shape<1, 4>, mesh, S<1>>::zeros(on);
    const auto target = sw::dtensor_of<std::int32_t, sw::shape<1>, mesh, R>::distribute(on, std::vector<std::int32_t>{3});
    const auto [loss, dx] = gradients_both_ways<sw::implicitly<loss_of>, 0>(rank, logits, target);
    CHECK(loss.item() == doctest::Approx(std::log(4.0)).epsilon(1e-15));
    static_assert(decltype(dx)::sp == decltype(logits)::sp);
    const auto mine = values_of(dx.to_local());
    REQUIRE(mine.size() == 2);
    CHECK(mine[0] == doctest::Approx(0.25).epsilon(1e-15));
    CHECK(mine[1] == doctest::Approx(rank.index() == 0 ? 0.25 : -0.75).epsilon(1e-15));
  });
}
