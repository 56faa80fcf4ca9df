// SPDX-License-Identifier: Apache-2.0
// cumsum, roll, flip, tile, einsum and a table's row for padding against plain loops, on 1 to 4 ranks, at once and compiled, and their
// gradients against differences.
#include <both_ways.hpp>
#include <figures.hpp>

#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/more_functions.hpp>

#include <doctest/doctest.h>

#include <functional>
#include <map>
#include <string>
#include <vector>

namespace {

using namespace test;
using figures::apart;
using figures::some;
using figures::whole;
using numbers = std::vector<double>;

template <int N>
struct line : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<line<N>>;
constexpr int A = 4, B = 3, C = 5;
template <int N, int D = 0>
using cube = sw::dtensor_of<double, sw::shape<A, B, C>, mesh<N>, sw::on<line<N>, sw::shard<D>>>;

// f of x (4, 3, 5), cut along D over 1 to 4 ranks, is `want`.
template <class F, int D>
void check(const numbers& want, double tolerance = 0) {
  const auto on = [&]<int N>(std::integral_constant<int, N>) {
    sw::launch<mesh<N>>([&](auto& rank) {
      sw::eager e(rank);
      const auto [y, dx] = gradients_both_ways<F, 0>(rank, cube<N, D>::distribute(e, some(A * B * C, 0)));
      CHECK(apart(whole(y), want) <= tolerance);
      CHECK(whole(dx).size() == A * B * C);
    });
  };
  on(std::integral_constant<int, 1>{});
  on(std::integral_constant<int, 2>{});
  on(std::integral_constant<int, 3>{});
  on(std::integral_constant<int, 4>{});
  CHECK(sw::gradcheck<F, sw::shape<A, B, C>>() == A * B * C);
}
// Element (i, j, k) of the result from x's.
numbers made(int a, int b, int c,
             const std::function<double(const std::function<double(int, int, int)>&, int, int, int)>& f) {
  const numbers x = some(A * B * C, 0);
  const auto at = [&](int i, int j, int k) { return x[static_cast<std::size_t>((i * B + j) * C + k)]; };
  numbers y;
  for (int i = 0; i < a; ++i)
    for (int j = 0; j < b; ++j)
      for (int k = 0; k < c; ++k) y.push_back(f(at, i, j, k));
  return y;
}

#define SHARDWISE_FUNCTION(name, ...)                                      \
  struct name {                                                            \
    constexpr auto operator()(const auto& x) const { return __VA_ARGS__; } \
  };
SHARDWISE_FUNCTION(summed, sw::cumsum<1>(x))
SHARDWISE_FUNCTION(summed_last, sw::cumsum<-1>(x))
SHARDWISE_FUNCTION(rolled, sw::roll<2, 2>(x))
SHARDWISE_FUNCTION(rolled_back, sw::roll<-1, -6>(x))
SHARDWISE_FUNCTION(not_rolled, sw::roll<1, 3>(x))
SHARDWISE_FUNCTION(flipped, sw::flip<1>(x))
SHARDWISE_FUNCTION(flipped_two, sw::flip<1, -1>(x))
SHARDWISE_FUNCTION(repeated, sw::tile<1, 2, 3>(x))
SHARDWISE_FUNCTION(repeated_more, sw::tile<2, 1, 1, 2>(x))
SHARDWISE_FUNCTION(turned, sw::einsum<"abc->ca">(x))
#undef SHARDWISE_FUNCTION

TEST_CASE("cumsum: along any dim that is not cut, floats in double") {
  const auto rows = made(A, B, C, [](const auto& x, int i, int j, int k) {
    double sum = 0;
    for (int n = 0; n <= j; ++n) sum += x(i, n, k);
    return sum;
  });
  check<summed, 0>(rows);
  check<summed, 2>(rows);
  check<summed_last, 1>(made(A, B, C, [](const auto& x, int i, int j, int k) {
    double sum = 0;
    for (int n = 0; n <= k; ++n) sum += x(i, j, n);
    return sum;
  }));
  sw::launch<mesh<1>>([](auto& rank) {
    sw::eager e(rank);
    using tensor = sw::dtensor_of<float, sw::shape<3, 1000>, mesh<1>>;
    const auto y = whole(sw::cumsum<1>(tensor::distribute(e, std::vector<float>(3000, 0.1F))));
    for (std::size_t i = 0; i < 1000; ++i)
      CHECK(y[i] == static_cast<double>(static_cast<float>(0.1F * static_cast<double>(i + 1))));
  });
}
TEST_CASE("roll, flip") {
  check<rolled, 0>(made(A, B, C, [](const auto& x, int i, int j, int k) { return x(i, j, (k + 3) % C); }));
  check<rolled_back, 1>(made(A, B, C, [](const auto& x, int i, int j, int k) { return x(i, j, (k + 6) % C); }));
  check<not_rolled, 0>(some(A * B * C, 0));
  check<flipped, 0>(made(A, B, C, [](const auto& x, int i, int j, int k) { return x(i, B - 1 - j, k); }));
  check<flipped_two, 0>(made(A, B, C, [](const auto& x, int i, int j, int k) { return x(i, B - 1 - j, C - 1 - k); }));
  sw::launch<mesh<1>>([](auto& rank) {
    sw::eager e(rank);
    using tensor = sw::dtensor_of<std::int32_t, sw::shape<3>, mesh<1>>;
    const auto x = tensor::distribute(e, std::vector<std::int32_t>{1, 2, 3});
    CHECK(whole(sw::roll<0, 1>(x)) == numbers{3, 1, 2});
    CHECK(whole(sw::flip<0>(x)) == numbers{3, 2, 1});
    CHECK(whole(sw::tile<2>(x)) == numbers{1, 2, 3, 1, 2, 3});
    CHECK(whole(sw::tile<2>(sw::unsqueeze<0>(x))) == numbers{1, 2, 3, 1, 2, 3});
  });
}
TEST_CASE("tile") {
  check<repeated, 0>(made(A, 2 * B, 3 * C, [](const auto& x, int i, int j, int k) { return x(i, j % B, k % C); }));
  check<repeated_more, 0>(made(2 * A, B, 2 * C, [](const auto& x, int i, int j, int k) { return x(i % A, j, k % C); }));
}
TEST_CASE("einsum of one tensor") {
  numbers want;
  const numbers x = some(A * B * C, 0);
  for (int c = 0; c < C; ++c)
    for (int a = 0; a < A; ++a) {
      double sum = 0;
      for (int b = 0; b < B; ++b) sum += x[static_cast<std::size_t>((a * B + b) * C + c)];
      want.push_back(sum);
    }
  check<turned, 0>(want, 1e-15);
}

// Any equation by its letters, slowly.
numbers by_letters(const std::string& a, const std::string& b, const std::string& out, const std::map<char, int>& extent) {
  const auto size = [&](const std::string& s) {
    int n = 1;
    for (const char c : s) n *= extent.at(c);
    return n;
  };
  const numbers x = some(static_cast<std::size_t>(size(a)), 0), y = some(static_cast<std::size_t>(size(b)), 1);
  std::string all = out;
  for (const char c : a + b)
    if (all.find(c) == std::string::npos) all += c;
  numbers z(static_cast<std::size_t>(size(out)), 0.0);
  std::map<char, int> at;
  const auto place = [&](const std::string& s) {
    int n = 0;
    for (const char c : s) n = n * extent.at(c) + at.at(c);
    return static_cast<std::size_t>(n);
  };
  for (int n = 0; n < size(all); ++n) {
    int rest = n;
    for (std::size_t k = all.size(); k-- > 0;) at[all[k]] = rest % extent.at(all[k]), rest /= extent.at(all[k]);
    z[place(out)] += x[place(a)] * y[place(b)];
  }
  return z;
}
template <sw::fixed_string E>
struct product {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::einsum<E>(x, y); }
};
template <sw::fixed_string E, class X, class Y>
void check_product(const std::string& a, const std::string& b, const std::string& out, const std::map<char, int>& extent) {
  const numbers want = by_letters(a, b, out, extent);
  INFO(a, " ", b, " ", out);
  sw::launch<mesh<1>>([&](auto& rank) {
    sw::eager e(rank);
    const auto x = sw::dtensor_of<double, X, mesh<1>>::distribute(
        e, some(static_cast<std::size_t>(sw::numel(sw::spec_of<double, X, mesh<1>>::value)), 0));
    const auto y = sw::dtensor_of<double, Y, mesh<1>>::distribute(
        e, some(static_cast<std::size_t>(sw::numel(sw::spec_of<double, Y, mesh<1>>::value)), 1));
    const auto [z] = both_ways<product<E>>(rank, x, y);
    CHECK(apart(whole(z), want) < 1e-13);
  });
  sw::gradcheck<product<E>, X, Y>();
}
TEST_CASE("einsum of two tensors, by its letters") {
  const std::map<char, int> n{{'a', 2}, {'b', 3}, {'c', 2}, {'d', 4}, {'e', 3}};
  check_product<"abcd,abed->abce", sw::shape<2, 3, 2, 4>, sw::shape<2, 3, 3, 4>>("abcd", "abed", "abce", n);
  check_product<"acbd, aebd -> abce", sw::shape<2, 2, 3, 4>, sw::shape<2, 3, 3, 4>>("acbd", "aebd", "abce", n);
  check_product<"ab,bd->da", sw::shape<2, 3>, sw::shape<3, 4>>("ab", "bd", "da", n);
  check_product<"ab,cd->acbd", sw::shape<2, 3>, sw::shape<2, 4>>("ab", "cd", "acbd", n);
  check_product<"abd,abd->", sw::shape<2, 3, 4>, sw::shape<2, 3, 4>>("abd", "abd", "", n);
  check_product<"abd,ab->a", sw::shape<2, 3, 4>, sw::shape<2, 3>>("abd", "ab", "a", n);  // d is summed before
  check_product<"ab,ab->ab", sw::shape<2, 3>, sw::shape<2, 3>>("ab", "ab", "ab", n);
  check_product<"a,b->ab", sw::shape<2>, sw::shape<3>>("a", "b", "ab", n);
  check_product<"abcd,db->ca", sw::shape<2, 3, 2, 4>, sw::shape<4, 3>>("abcd", "db", "ca", n);
}
TEST_CASE("einsum on a mesh: heads cut over ranks, and a sum over what is cut is partial") {
  sw::launch<mesh<3>>([](auto& rank) {
    sw::eager e(rank);
    using heads = sw::dtensor_of<double, sw::shape<2, 3, 2, 4>, mesh<3>, sw::on<line<3>, sw::shard<1>>>;
    const auto x = heads::distribute(e, some(48, 0));
    const auto y = heads::distribute(e, some(48, 1));
    const std::map<char, int> n{{'a', 2}, {'b', 3}, {'c', 2}, {'d', 4}, {'e', 2}};
    CHECK(apart(whole(sw::einsum<"abcd,abed->abce">(x, y)), by_letters("abcd", "abed", "abce", n)) < 1e-14);
    const auto sums = sw::einsum<"abcd,abcd->ad">(x, y);
    CHECK(sums.sp.place[0].is_partial());
    CHECK(apart(whole(sums), by_letters("abcd", "abcd", "ad", n)) < 1e-14);
  });
}

template <std::int64_t Row>
struct looked_up {
  constexpr auto operator()(const auto& table) const {
    return sw::embedding<sw::padding_idx<Row>>(table,
                                               sw::cast<std::int32_t>(sw::pow(sw::arange<double, 3>(table), 2)));  // 0, 1, 4
  }
};
TEST_CASE("embedding: the row for padding is read and has no gradient") {
  sw::launch<mesh<1>>([](auto& rank) {
    sw::eager e(rank);
    const auto table = sw::dtensor_of<double, sw::shape<5, 2>, mesh<1>>::distribute(e, some(10, 0));
    const numbers t = some(10, 0), want{t[0], t[1], t[2], t[3], t[8], t[9]};
    const auto [y, dt] = gradients_both_ways<looked_up<1>, 0>(rank, table);
    CHECK(whole(y) == want);
    CHECK(whole(dt) == numbers{1, 1, 0, 0, 0, 0, 0, 0, 1, 1});
    const auto [z, dz] = gradients_both_ways<looked_up<-1>, 0>(rank, table);
    CHECK(whole(z) == want);
    CHECK(whole(dz) == numbers{1, 1, 1, 1, 0, 0, 0, 0, 0, 0});
  });
}

}  // namespace
