// SPDX-License-Identifier: Apache-2.0
// Elementwise functions, reductions and searches on one rank against plain loops: values, NaNs, ties, strided operands.
#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>

namespace {

using namespace test;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;
constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();

template <class Shape, class T = double>
using type = sw::dtensor_of<T, Shape, mesh>;

// Both signs, zeros, ties; a longer tail makes the vector loops run.
template <class T = double>
std::vector<T> some(std::int64_t n, int salt) {
  std::vector<T> v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<T>(static_cast<int>((i * 37 + salt * 11) % 17) - 8) / T(4));
  return v;
}

bool alike(double a, double b, double tolerance) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= tolerance * std::max(1.0, std::abs(b));
}

// f(x) elementwise is `want`, in both types, contiguous and transposed.
template <class T, class F>
void check_unary(const char* name, F f, const std::function<double(double)>& want, double tolerance) {
  INFO(name);
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    auto values = some<T>(6 * 7, 1);
    values[3] = static_cast<T>(not_a_number);
    values[4] = static_cast<T>(inf);
    values[5] = static_cast<T>(-inf);
    const auto x = type<sw::shape<6, 7>, T>::distribute(on, values);
    const auto y = values_of(f(x).to_local());
    const auto turned = values_of(f(sw::permute<1, 0>(x)).to_local());
    for (std::size_t i = 0; i < values.size(); ++i) {
      const double w = want(static_cast<double>(values[i]));
      CHECK_MESSAGE(alike(static_cast<double>(y[i]), w, tolerance), values[i], " gives ", y[i], ", not ", w);
      CHECK(alike(static_cast<double>(turned[i % 7 * 6 + i / 7]), w, tolerance));
    }
  });
}
template <class F>
void check_unary(const char* name, F f, const std::function<double(double)>& want) {
  check_unary<double>(name, f, want, 1e-14);
  check_unary<float>(name, f, want, 1e-6);
}

// f(x, y) of (6, 7) with (7), (6, 1) and (6, 7).
template <class F>
void check_binary(const char* name, F f, const std::function<double(double, double)>& want) {
  INFO(name);
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    auto a = some(42, 1), b = some(42, 5);
    a[0] = not_a_number;
    b[1] = not_a_number;
    const auto x = type<sw::shape<6, 7>>::distribute(on, a);
    const auto check = [&](const auto& r, auto at) {
      const auto v = values_of(r.to_local());
      REQUIRE(v.size() == 42);
      for (std::size_t i = 0; i < 42; ++i) CHECK(alike(v[i], want(a[i], b[at(i)]), 1e-15));
    };
    check(f(x, type<sw::shape<6, 7>>::distribute(on, b)), [](std::size_t i) { return i; });
    check(f(x, type<sw::shape<7>>::distribute(on, std::vector<double>(b.begin(), b.begin() + 7))),
          [](std::size_t i) { return i % 7; });
    check(f(x, type<sw::shape<6, 1>>::distribute(on, std::vector<double>(b.begin(), b.begin() + 6))),
          [](std::size_t i) { return i / 7; });
  });
}

}  // namespace

#define SHARDWISE_UNARY(name, want) \
  check_unary(#name, [](const auto& x) { return sw::name(x); }, [](double x) -> double { return want; })
#define SHARDWISE_BINARY(name, want)                                      \
  check_binary(                                                           \
      #name, [](const auto& x, const auto& y) { return sw::name(x, y); }, \
      [](double x, double y) -> double { return want; })

TEST_CASE("elementwise functions of one tensor") {
  SHARDWISE_UNARY(abs, std::abs(x));
  SHARDWISE_UNARY(neg, -x);
  SHARDWISE_UNARY(sign, std::isnan(x) ? x : double(x > 0) - double(x < 0));
  SHARDWISE_UNARY(exp, std::exp(x));
  SHARDWISE_UNARY(log, std::log(x));
  SHARDWISE_UNARY(sqrt, std::sqrt(x));
  SHARDWISE_UNARY(rsqrt, 1 / std::sqrt(x));
  SHARDWISE_UNARY(reciprocal, 1 / x);
  SHARDWISE_UNARY(sigmoid, 1 / (1 + std::exp(-x)));
  SHARDWISE_UNARY(silu, x * (1 / (1 + std::exp(-x))));
  SHARDWISE_UNARY(sin, std::sin(x));
  SHARDWISE_UNARY(cos, std::cos(x));
  SHARDWISE_UNARY(square, x * x);
  check_unary("pow 3", [](const auto& x) { return sw::pow(x, 3); }, [](double x) { return x * x * x; });
  check_unary("pow 0", [](const auto& x) { return sw::pow(x, 0); }, [](double) { return 1.0; });
  check_unary(
      "clamp", [](const auto& x) { return sw::clamp(x, -0.5, 1.0); },
      [](double x) { return x < -0.5 ? -0.5
                            : x > 1  ? 1
                                     : x; });
  check_unary("number - x", [](const auto& x) { return 2 - x; }, [](double x) { return 2 - x; });
  check_unary("number / x", [](const auto& x) { return 3 / x; }, [](double x) { return 3 * (1 / x); });
  check_unary("x / number", [](const auto& x) { return -x / 4 * 2 + 2 * x; }, [](double x) { return -x / 4 * 2 + 2 * x; });
}

TEST_CASE("elementwise functions of two tensors broadcast; NaNs spread as in PyTorch") {
  SHARDWISE_BINARY(div, x / y);
  SHARDWISE_BINARY(maximum, std::isnan(x) || std::isnan(y) ? not_a_number : std::max(x, y));
  SHARDWISE_BINARY(minimum, std::isnan(x) || std::isnan(y) ? not_a_number : std::min(x, y));
  SHARDWISE_BINARY(eq, x == y);
  SHARDWISE_BINARY(ne, x != y);
  SHARDWISE_BINARY(lt, x < y);
  SHARDWISE_BINARY(le, x <= y);
  SHARDWISE_BINARY(gt, x > y);
  SHARDWISE_BINARY(ge, x >= y);
  check_binary(
      "lerp 0.25", [](const auto& x, const auto& y) { return sw::lerp(x, y, 0.25); },
      [](double x, double y) { return x + 0.25 * (y - x); });
  check_binary(
      "lerp 0.75", [](const auto& x, const auto& y) { return sw::lerp(x, y, 0.75); },
      [](double x, double y) { return y - 0.25 * (y - x); });
  check_binary(
      "where", [](const auto& x, const auto& y) { return sw::where(sw::lt(x, y), x * 2, y); },
      [](double x, double y) { return x < y ? x * 2 : y; });
  check_binary(
      "masked_fill", [](const auto& x, const auto& y) { return sw::masked_fill(x, sw::gt(x, y), -inf); },
      [](double x, double y) { return x > y ? -inf : x; });
}

TEST_CASE("integers are compared, and with numbers; a mask chooses integers' places") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = type<sw::shape<2, 3>, std::int32_t>::distribute(on, std::vector<std::int32_t>{3, -100, 7, -100, 0, 3});
    CHECK(values_of(sw::eq(x, -100).to_local()) == std::vector<std::int32_t>{0, 1, 0, 1, 0, 0});
    CHECK(values_of(sw::ge(x, sw::permute<1, 0>(sw::permute<1, 0>(x))).to_local()) == std::vector<std::int32_t>(6, 1));
    CHECK(values_of(sw::lt(x, 3).to_local()) == std::vector<std::int32_t>{0, 1, 0, 1, 1, 0});
    // compare_fraction: with any number, in int32's range or not
    const std::vector<std::int32_t> ends{-2147483647 - 1, -1, 0, 1, 2, 2147483647};
    const auto e = type<sw::shape<6>, std::int32_t>::distribute(on, ends);
    for (const double n : {1.5, -1.5, 2.0, 0.0, -0.25, 3e9, -3e9, 2147483646.5, 2147483647.0, 2147483648.0, -2147483648.0,
                           -2147483648.5, 1e300, inf, -inf, not_a_number}) {
      const auto check = [&](const auto& got, auto holds) {
        const auto v = values_of(got.to_local());
        for (std::size_t i = 0; i < 6; ++i)
          CHECK_MESSAGE(v[i] == (holds(static_cast<double>(ends[i])) ? 1 : 0), ends[i], " and ", n);
      };
      check(sw::lt(e, n), [n](double i) { return i < n; });
      check(sw::le(e, n), [n](double i) { return i <= n; });
      check(sw::gt(e, n), [n](double i) { return i > n; });
      check(sw::ge(e, n), [n](double i) { return i >= n; });
      check(sw::eq(e, n), [n](double i) { return i == n; });
      check(sw::ne(e, n), [n](double i) { return i != n; });
    }
    // what would become an element must be one
    const auto refused = [](auto f) {
      CHECK_THROWS_WITH(f(), doctest::Contains("and the tensor's elements are int32; give a whole number from -2147483648"));
    };
    for (const double n : {1.5, 3e9, not_a_number, inf}) {
      refused([&] { sw::fill_(e, n); });
      refused([&] { sw::full_like(e, n); });
      refused([&] { sw::constant_like(e, n); });
      refused([&] { sw::constant_pad<1, 1>(e, n); });
      refused([&] { type<sw::shape<6>, std::int32_t>::full(on, n); });
    }
    sw::fill_(e, -7);
    CHECK(values_of(e.to_local()) == std::vector<std::int32_t>(6, -7));
  });
}

TEST_CASE("reductions over any dims") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto v = some(2 * 3 * 4, 3);
    const auto x = type<sw::shape<2, 3, 4>>::distribute(on, v);
    // over dims 0 and 2, by a plain loop
    const auto folded = [&](double start, auto f) {
      std::vector<double> r(3, start);
      for (std::size_t i = 0; i < 24; ++i) r[i / 4 % 3] = f(r[i / 4 % 3], v[i]);
      return r;
    };
    const auto largest = folded(-inf, [](double a, double b) { return std::max(a, b); });
    CHECK(values_of(sw::amax<0, 2>(x).to_local()) == largest);
    CHECK(values_of(sw::amax<0, -1>(x, sw::keepdim).to_local()) == largest);
    static_assert(decltype(sw::amax<0, -1>(x, sw::keepdim))::sp.rank == 3 && decltype(sw::amax<0, -1>(x))::sp.rank == 1);
    CHECK(values_of(sw::amax<0, 1>(sw::permute<0, 2, 1>(x)).to_local()) == largest);
    CHECK(values_of(sw::amin<0, 2>(x).to_local()) == folded(inf, [](double a, double b) { return std::min(a, b); }));
    CHECK(values_of(sw::prod<0, 2>(x + 3).to_local()) == folded(1, [](double a, double b) { return a * (b + 3); }));
    CHECK(sw::max(x).item() == *std::max_element(v.begin(), v.end()));
    CHECK(sw::min(x).item() == *std::min_element(v.begin(), v.end()));
    const double mean = std::accumulate(v.begin(), v.end(), 0.0) / 24;
    double square = 0;
    for (double e : v) square += (e - mean) * (e - mean);
    CHECK(sw::var(x).item() == doctest::Approx(square / 23).epsilon(1e-14));
    CHECK(sw::std(x, 0).item() == doctest::Approx(std::sqrt(square / 24)).epsilon(1e-14));
    CHECK(sw::mean(x, sw::keepdim).item() == doctest::Approx(mean).epsilon(1e-14));
    CHECK(values_of(sw::sum<1>(x, sw::keepdim).to_local()) == values_of(sw::sum<1>(x).to_local()));
    // a NaN stays
    auto w = v;
    w[5] = not_a_number;
    const auto y = type<sw::shape<2, 3, 4>>::distribute(on, w);
    CHECK(std::isnan(sw::max(y).item()));
    CHECK(std::isnan(sw::min(y).item()));
    // of nothing: the neutral element
    const auto none = type<sw::shape<0, 3>>::distribute(on, std::vector<double>{});
    CHECK(values_of(sw::amax<0>(none).to_local()) == std::vector<double>(3, -inf));
    CHECK(values_of(sw::prod<0>(none).to_local()) == std::vector<double>(3, 1));
  });
}

TEST_CASE("softmax and log_softmax along any dim") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto v = some(2 * 3 * 4, 3);
    const auto x = type<sw::shape<2, 3, 4>>::distribute(on, v);
    const auto s = values_of(sw::softmax<1>(x).to_local()), l = values_of(sw::log_softmax<-2>(x).to_local());
    const auto last = values_of(sw::log_softmax(x).to_local());
    for (std::size_t i = 0; i < 24; ++i) {
      double total = 0, row = 0;
      for (std::size_t k = 0; k < 3; ++k) total += std::exp(v[i / 12 * 12 + k * 4 + i % 4]);
      for (std::size_t k = 0; k < 4; ++k) row += std::exp(v[i / 4 * 4 + k]);
      CHECK(s[i] == doctest::Approx(std::exp(v[i]) / total).epsilon(1e-13));
      CHECK(l[i] == doctest::Approx(v[i] - std::log(total)).epsilon(1e-13));
      CHECK(last[i] == doctest::Approx(v[i] - std::log(row)).epsilon(1e-13));
    }
    // every dim's log-sum-exp, and its shape
    const auto sums = values_of(sw::logsumexp<1>(x).to_local()),
               kept = values_of(sw::logsumexp<1>(x, sw::keepdim).to_local());
    static_assert(decltype(sw::logsumexp<1>(x))::sp.extent[1] == 4 &&
                  decltype(sw::logsumexp<0>(x, sw::keepdim))::sp.rank == 3);
    for (std::size_t i = 0; i < 8; ++i) {
      double total = 0;
      for (std::size_t k = 0; k < 3; ++k) total += std::exp(v[i / 4 * 12 + k * 4 + i % 4]);
      CHECK(sums[i] == doctest::Approx(std::log(total)).epsilon(1e-13));
      CHECK(kept[i] == sums[i]);
    }
    // far from zero nothing overflows
    const auto far = sw::log_softmax(x + 2000.0);
    for (std::size_t i = 0; i < 24; ++i) CHECK(values_of(far.to_local())[i] == doctest::Approx(last[i]).epsilon(1e-11));
  });
}

TEST_CASE("topk, sort, argmax and argmin: of equals the first; a NaN is the largest") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const std::vector<double> v{1, 5, 2, 5, -1, 0, 0, 0, 0, 0, 3, not_a_number, 4, 3, 4};
    const auto x = type<sw::shape<3, 5>>::distribute(on, v);
    using ids = std::vector<std::int32_t>;
    const auto [values, indices] = sw::topk<3>(x);
    CHECK(values_of(indices.to_local()) == ids{1, 3, 2, 0, 1, 2, 1, 2, 4});
    const auto got = values_of(values.to_local());
    for (std::size_t i = 0; i < 9; ++i)
      CHECK(alike(got[i], v[i / 3 * 5 + static_cast<std::size_t>(values_of(indices.to_local())[i])], 0));
    CHECK(values_of(sw::topk<2, -1, false>(x).indices.to_local()) == ids{4, 0, 0, 1, 0, 3});
    CHECK(values_of(sw::topk<2, 0>(sw::permute<1, 0>(x)).indices.to_local()) == ids{1, 0, 1, 3, 1, 2});
    const auto ordered = sw::sort(type<sw::shape<4>>::distribute(on, std::vector<double>{3, 1, 2, 1}));
    CHECK(values_of(ordered.values.to_local()) == std::vector<double>{1, 1, 2, 3});
    CHECK(values_of(ordered.indices.to_local()) == ids{1, 3, 2, 0});
    CHECK(values_of(sw::argmax<1>(x).to_local()) == ids{1, 0, 1});
    CHECK(values_of(sw::argmin<1>(x).to_local()) == ids{4, 0, 1});
    CHECK(values_of(sw::argmin<0>(sw::slice<0, 0, 2>(x)).to_local()) == ids{1, 1, 1, 1, 0});
    CHECK(values_of(sw::argmax(sw::slice<0, 0, 2>(x)).to_local()) == ids{1});
    static_assert(decltype(sw::argmax(x))::sp.rank == 0 && decltype(sw::argmax<1>(x))::sp.rank == 1);
  });
}
