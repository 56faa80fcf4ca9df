// SPDX-License-Identifier: Apache-2.0
// Joins, views, indexing, paddings and fills on one rank: values against loops that a reader can check, storage that is
// shared, and what wrong indices say.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <both_ways.hpp>
#include <thrown.hpp>

#include <cmath>
#include <set>
#include <string>
#include <vector>

namespace {

using namespace test;

struct alone : sw::axis<1> {};
using single = sw::mesh<alone>;
template <class Shape, class T = double>
using plain = sw::dtensor_of<T, Shape, single>;
using numbers = std::vector<double>;

template <class T = double>
std::vector<T> counted(int n, T from = 0) {
  std::vector<T> v(static_cast<std::size_t>(n));
  for (int i = 0; i < n; ++i) v[static_cast<std::size_t>(i)] = from + static_cast<T>(i);
  return v;
}
template <class X>
auto values(const X& x) {
  return values_of(x.to_local());
}

}  // namespace

TEST_CASE("cat, stack, split, chunk, unbind: values") {
  sw::launch<single>([](auto& rank) {
    sw::eager on(rank);
    const auto x = plain<sw::shape<2, 3>>::distribute(on, counted(6));
    const auto y = plain<sw::shape<2, 2>>::distribute(on, counted(4, 10.0));
    CHECK(values(sw::cat<1>(x, y)) == numbers{0, 1, 2, 10, 11, 3, 4, 5, 12, 13});
    CHECK(values(sw::cat<0>(sw::transpose<0, 1>(x), sw::transpose<0, 1>(y))) == numbers{0, 3, 1, 4, 2, 5, 10, 12, 11, 13});
    const auto z = plain<sw::shape<0, 3>>::distribute(on, numbers{});
    CHECK(values(sw::cat<0>(z, x, z)) == counted(6));
    CHECK(values(sw::stack<0>(x, x)) == numbers{0, 1, 2, 3, 4, 5, 0, 1, 2, 3, 4, 5});
    CHECK(values(sw::stack<-1>(x, x)) == numbers{0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5});
    const auto ids = plain<sw::shape<3>, std::int32_t>::distribute(on, counted<std::int32_t>(3));
    CHECK(values(sw::cat<0>(ids, ids)) == std::vector<std::int32_t>{0, 1, 2, 0, 1, 2});
    const auto one = [&](double v) { return plain<sw::shape<1>>::full(on, v); };
    const auto many = sw::cat<0>(one(0), one(1), one(2), one(3), one(4), one(5), one(6), one(7), one(8), one(9), one(10));
    CHECK(values(many) == counted(11));
    const auto [a, b, c] = sw::split<1, 1, 0, 2>(x);
    CHECK(values(a) == numbers{0, 3});
    CHECK(values(b).empty());
    CHECK(values(c) == numbers{1, 2, 4, 5});
    CHECK(c.shares_storage_with(x));
    const auto [first, second] = sw::chunk<1, 2>(x);
    CHECK(values(first) == numbers{0, 1, 3, 4});
    CHECK(values(second) == numbers{2, 5});
    CHECK(values(std::get<2>(sw::unbind<1>(x))) == numbers{2, 5});
    CHECK(values(std::apply([](const auto&... p) { return sw::cat<1>(p...); }, sw::split<1, 2, 1>(x))) == counted(6));
  });
}

TEST_CASE("views: values, and storage that is shared") {
  sw::launch<single>([](auto& rank) {
    sw::eager on(rank);
    const auto x = plain<sw::shape<2, 3>>::distribute(on, counted(6));
    const auto turned = sw::transpose<0, 1>(x);
    CHECK(values(sw::unsqueeze<1>(turned)) == numbers{0, 3, 1, 4, 2, 5});
    CHECK(sw::unsqueeze<1>(turned).shares_storage_with(x));
    CHECK(values(sw::squeeze(sw::unsqueeze<-1>(turned))) == values(turned));
    CHECK(values(sw::select<0, 1>(turned)) == numbers{1, 4});
    CHECK(values(sw::select<1, -1>(x)) == numbers{2, 5});
    CHECK(sw::select<1, -1>(x).shares_storage_with(x));
    CHECK(values(sw::narrow<1, -2, 1>(x)) == numbers{1, 4});
    CHECK(values(sw::view<-1>(x)) == counted(6));
    CHECK(sw::view<3, -1>(x).shares_storage_with(x));
    CHECK(values(sw::flatten(turned)) == numbers{0, 3, 1, 4, 2, 5});
    CHECK(values(sw::unflatten<1, 3, 1>(x)) == counted(6));
    const auto row = sw::select<0, 1>(x);
    const auto rows = sw::expand<2, 3>(row);
    CHECK(rows.shares_storage_with(x));
    CHECK(values(rows) == numbers{3, 4, 5, 3, 4, 5});
    const auto columns = sw::expand<-1, 3>(sw::unsqueeze<1>(sw::select<1, 0>(x)));
    CHECK(values(columns) == numbers{0, 0, 0, 3, 3, 3});
    CHECK(values(sw::expand_as(row, x)) == values(rows));
    // broadcast operands of products, sums, copies
    CHECK(values(sw::matmul(rows, sw::transpose<0, 1>(x))) == numbers{14, 50, 14, 50});
    CHECK(values(sw::matmul(columns, turned)) == numbers{0, 0, 9, 36});
    CHECK(values(rows + columns) == numbers{3, 4, 5, 6, 7, 8});
    CHECK(values(sw::sum<0>(rows)) == numbers{6, 8, 10});
    CHECK(values(sw::flatten(columns)) == numbers{0, 0, 0, 3, 3, 3});
    CHECK(values(sw::softmax(sw::expand<4, 2>(plain<sw::shape<2>>::full(on, 1)))) == numbers(8, 0.5));
  });
}

TEST_CASE("gather, scatter, index_select: against loops, with repeated indices") {
  sw::launch<single>([](auto& rank) {
    sw::eager on(rank);
    const auto xv = counted(12, 1.0);
    const auto x = plain<sw::shape<4, 3>>::distribute(on, xv);
    const std::vector<std::int32_t> iv{2, 0, 2, 1, 1, 1, 0, 2, 0, 0, 0, 1};
    const auto index = plain<sw::shape<4, 3>, std::int32_t>::distribute(on, iv);
    const auto sv = counted(12, 100.0);
    const auto src = plain<sw::shape<4, 3>>::distribute(on, sv);
    const auto at = [](int i, int j) { return static_cast<std::size_t>(3 * i + j); };
    numbers along_1(12), along_0(12), added(xv), written(xv), number(xv), summed(xv);
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 3; ++j) {
        const int id = iv[at(i, j)];
        along_1[at(i, j)] = xv[at(i, id)];
        along_0[at(i, j)] = xv[at(id, j)];
        added[at(i, id)] += sv[at(i, j)];
        written[at(i, id)] = sv[at(i, j)];
        number[at(i, id)] = -7;
        summed[at(id, j)] += sv[at(i, j)];
      }
    CHECK(values(sw::gather<1>(x, index)) == along_1);
    CHECK(values(sw::gather<0>(x, index)) == along_0);
    CHECK(values(sw::gather<-1>(sw::transpose<0, 1>(sw::contiguous(sw::transpose<0, 1>(x))), index)) == along_1);
    CHECK(values(sw::scatter_add<1>(x, index, src)) == added);
    CHECK(values(sw::scatter_add<0>(x, index, src)) == summed);
    CHECK(values(sw::scatter<1>(x, index, src)) == written);
    CHECK(values(sw::scatter<1>(x, index, -7.0)) == number);
    CHECK(values(sw::gather<1>(x, sw::narrow<0, 1, 2>(index))) == numbers{2, 2, 2, 4, 6, 4});
    const auto list = plain<sw::shape<2>, std::int32_t>::distribute(on, std::vector<std::int32_t>{2, 0});
    CHECK(values(sw::index_select<1>(x, list)) == numbers{3, 1, 6, 4, 9, 7, 12, 10});
    CHECK(values(sw::index_select<0>(x, list)) == numbers{7, 8, 9, 1, 2, 3});
    CHECK(values(sw::index_select<0>(index, list)) == std::vector<std::int32_t>{0, 2, 0, 2, 0, 2});
    CHECK(values(sw::index_add<0>(x, list, plain<sw::shape<2, 3>>::full(on, 5))) ==
          numbers{6, 7, 8, 4, 5, 6, 12, 13, 14, 10, 11, 12});
    CHECK(values(sw::one_hot<3, double>(list)) == numbers{0, 0, 1, 1, 0, 0});
    CHECK(values(sw::one_hot<3, std::int32_t>(list)) == std::vector<std::int32_t>{0, 0, 1, 1, 0, 0});
    CHECK(values(sw::constant_pad<1, 1>(list, 7)) == std::vector<std::int32_t>{7, 2, 0, 7});
    CHECK(values(sw::full_like(list, 4)) == std::vector<std::int32_t>{4, 4});

    // the first bad index, by name, with the limit
    const auto bad = plain<sw::shape<4, 1>, std::int32_t>::distribute(on, std::vector<std::int32_t>{0, 1, 3, -1});
    const std::string said = thrown([&] { sw::gather<1>(x, bad); });
    CHECK(mentions(said, "gather: index 3 is outside 0..2"));
    CHECK(mentions(thrown([&] { sw::scatter<1>(x, bad, 1.0); }), "scatter: index 3 is outside 0..2"));
    CHECK(mentions(thrown([&] { sw::scatter_add<1>(x, bad, sw::gather<1>(x, sw::narrow<1, 0, 1>(index))); }),
                   "scatter_add: index 3 is outside 0..2"));
    const auto negative = plain<sw::shape<1>, std::int32_t>::distribute(on, std::vector<std::int32_t>{-1});
    CHECK(mentions(thrown([&] { sw::index_select<0>(x, negative); }), "index_select: index -1 is outside 0..3"));
    CHECK(mentions(thrown([&] { sw::one_hot<4>(negative); }), "one_hot: index -1 is outside 0..3"));
  });
}

namespace {

template <int N>
struct line : sw::axis<N> {};
// Zeros in what the ranks' parts sum up to, on every rank: a number other than zero would be added up.
template <int N>
struct zeroed {
  constexpr auto operator()(const auto& x, const auto& index) const {
    const auto parts = sw::sum<0>(x);
    return sw::redistribute<line<N>, sw::reduced>(sw::scatter_zero<1>(parts, index));
  }
};
template <int N>
void check_zeroed() {
  using mesh = sw::mesh<line<N>>;
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto xv = counted(5 * 2 * 4, 1.0);
    using of = sw::dtensor_of<double, sw::shape<5, 2, 4>, mesh, sw::on<line<N>, sw::shard<0>>>;
    const auto index = sw::dtensor_of<std::int32_t, sw::shape<2, 2>, mesh, sw::on<line<N>, sw::reduced>>::distribute(
        on, std::vector<std::int32_t>{2, 0, 3, 3});
    numbers want;
    for (std::size_t i = 0; i < 8; ++i) {
      const bool is_zero = i == 2 || i == 0 || i == 7;
      double sum = 0;
      for (std::size_t k = 0; k < 5; ++k) sum += xv[k * 8 + i];
      want.push_back(is_zero ? 0 : sum);
    }
    const auto [y, dx] = gradients_both_ways<zeroed<N>, 0>(rank, of::distribute(on, xv), index);
    CHECK(values(y) == want);
    const numbers gradient = values(dx);
    for (std::size_t i = 0; i < gradient.size(); ++i) CHECK(gradient[i] == (want[i % 8] == 0 ? 0 : 1));
  });
}

}  // namespace

TEST_CASE("scatter_zero: of partial sums, with its gradient") {
  check_zeroed<1>();
  check_zeroed<2>();
  check_zeroed<3>();
}

TEST_CASE("constant_pad, tril, triu, fills: values") {
  sw::launch<single>([](auto& rank) {
    sw::eager on(rank);
    const auto x = plain<sw::shape<2, 2>>::distribute(on, counted(4, 1.0));
    CHECK(values(sw::constant_pad<1, 2>(x)) == numbers{0, 1, 2, 0, 0, 0, 3, 4, 0, 0});
    CHECK(values(sw::constant_pad<0, 0, 1, 0>(x, 9)) == numbers{9, 9, 1, 2, 3, 4});
    CHECK(values(sw::constant_pad<1, 0, 0, 1>(sw::transpose<0, 1>(x), 9)) == numbers{9, 1, 3, 9, 2, 4, 9, 9, 9});
    const auto y = plain<sw::shape<3, 4>>::full(on, 1);
    CHECK(values(sw::tril(y)) == numbers{1, 0, 0, 0, 1, 1, 0, 0, 1, 1, 1, 0});
    CHECK(values(sw::triu<1>(y)) == numbers{0, 1, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1});
    CHECK(values(sw::tril<-1>(y)) == numbers{0, 0, 0, 0, 1, 0, 0, 0, 1, 1, 0, 0});
    CHECK(values(sw::full_like(x, 3)) == numbers(4, 3.0));
    CHECK(values(sw::zeros_like(x)) == numbers(4, 0.0));
    CHECK(values(sw::ones_like(x)) == numbers(4, 1.0));
    CHECK(values(sw::arange<double, 5>(x)) == counted(5));
    CHECK(values(sw::arange_from<std::int32_t, 7, -2, -3>(x)) == std::vector<std::int32_t>{7, 4, 1});
    CHECK(values(sw::full<float, sw::shape<2>>(x, 2)) == std::vector<float>{2, 2});
  });
}

TEST_CASE("random fills: ranges, moments, and numbers that are drawn anew") {
  sw::launch<single>([](auto& rank) {
    sw::eager on(rank);
    on.start_step(7, 1);
    const auto like = plain<sw::shape<200, 50>>::full(on, 0.3);
    const auto u = values(sw::rand_like(like)), v = values(sw::rand_like(like)), z = values(sw::randn_like(like));
    const auto hits = values(sw::bernoulli(like));
    double mean = 0, square = 0, normal = 0, variance = 0, rate = 0;
    for (std::size_t i = 0; i < u.size(); ++i) {
      CHECK_UNARY(u[i] >= 0 && u[i] < 1 && std::isfinite(z[i]) && (hits[i] == 0 || hits[i] == 1));
      mean += u[i];
      square += u[i] * u[i];
      normal += z[i];
      variance += z[i] * z[i];
      rate += hits[i];
    }
    const double n = static_cast<double>(u.size());
    CHECK(mean / n == doctest::Approx(0.5).epsilon(0.02));
    CHECK(square / n == doctest::Approx(1.0 / 3).epsilon(0.03));
    CHECK(std::abs(normal / n) < 0.03);
    CHECK(variance / n == doctest::Approx(1).epsilon(0.04));
    CHECK(rate / n == doctest::Approx(0.3).epsilon(0.04));
    CHECK(std::set<double>(u.begin(), u.end()).size() > 9900);
    CHECK(u != v);
    on.start_step(7, 1);
    CHECK(values(sw::rand_like(like)) == u);
    on.start_step(8, 1);
    CHECK(values(sw::rand_like(like)) != u);
    // float keeps below 1
    const auto narrow = values(sw::rand<float, sw::shape<400>>(like));
    for (const float e : narrow) CHECK_UNARY(e >= 0 && e < 1);
  });
}
