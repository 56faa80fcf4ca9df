// SPDX-License-Identifier: Apache-2.0
// Further elementwise functions, gated units, and what is true of elements: values of 40 digits (mpmath), special ones, gradients against
// differences and where functions bend, at once and compiled, and the same bits in vectors and apart.
#include <both_ways.hpp>
#include <figures.hpp>
#include <last_place.hpp>

#include <shardwise/graph/functions/activations.hpp>
#include <shardwise/graph/functions/logical.hpp>
#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/operations/activation/host.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace {

using namespace test;
using figures::whole;

template <int N>
struct line : sw::axis<N> {};
using mesh = sw::mesh<line<1>>;
template <class Shape, class T = double>
using type = sw::dtensor_of<T, Shape, mesh>;
constexpr double nan_ = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
using numbers = std::vector<double>;

const numbers points{-30, -2.5, -1, -0.5, -1e-9, 0, 1e-9, 0.25, 0.5, 1.5, 2.5, 7.75, 25};

template <class T, class F>
numbers at(const numbers& given, F f) {
  numbers got;
  sw::launch<mesh>([&](auto& rank) {
    sw::eager on(rank);
    std::vector<T> x(13);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<T>(given[i]);
    got = whole(f(type<sw::shape<13>, T>::distribute(on, x)));
  });
  return got;
}
bool close(double a, double b, double relative) {
  return (std::isnan(a) && std::isnan(b)) || a == b || std::abs(a - b) <= relative * std::abs(b);
}
// Relative: what is small is as exact as what is large. Floats of numbers that are no floats are those of their neighbours.
template <class F>
void check(const char* name, F f, const numbers& want) {
  INFO(name);
  const numbers wide = at<double>(points, f), narrow = at<float>(points, f);
  for (std::size_t i = 0; i < points.size(); ++i) {
    INFO("of ", points[i], ": ", wide[i], " and ", narrow[i], ", not ", want[i]);
    CHECK(close(wide[i], want[i], 6e-16));
    CHECK(close(narrow[i], want[i], 3e-7));
  }
}

TEST_CASE("further elementwise functions: values") {
  check("erf", [](auto x) { return sw::erf(x); },
        {-1.0, -0.99959304798255504106, -0.84270079294971486934, -0.52049987781304653768, -1.1283791670955126438e-9, 0.0,
         1.1283791670955126438e-9, 0.27632639016823693299, 0.52049987781304653768, 0.96610514647531072707,
         0.99959304798255504106, 1.0, 1.0});
  check("expm1", [](auto x) { return sw::expm1(x); },
        {-0.99999999999990642377, -0.91791500137610120483, -0.6321205588285576784, -0.3934693402873665764,
         -9.9999999950000006245e-10, 0.0, 1.0000000005000000624e-9, 0.28402541668774148407, 0.64872127070012814685,
         3.4816890703380648226, 11.182493960703473438, 2320.5724146110567464, 72004899336.385872524});
  check("log1p of the size", [](auto x) { return sw::log1p(sw::abs(x)); },
        {3.4339872044851462459, 1.2527629684953679957, 0.69314718055994530942, 0.40546510810816438198,
         9.9999999950000006261e-10, 0.0, 9.9999999950000006261e-10, 0.22314355131420975577, 0.40546510810816438198,
         0.91629073187415506518, 1.2527629684953679957, 2.1690537003695230609, 3.2580965380214820455});
  check("softplus", [](auto x) { return sw::softplus(x); },
        {9.3576229688397367794e-14, 0.078889734292549623344, 0.31326168751822283405, 0.47407698418010668087,
         0.69314718005994530954, 0.69314718055994530942, 0.69314718105994530954, 0.82593941987884356221,
         0.97407698418010668087, 1.7014132779827524095, 2.5788897342925496233, 7.7504306497976388198, 25.0});
  check("softplus with beta and threshold",
        [](auto x) { return sw::softplus<sw::softplus_options{.beta = 2, .threshold = 3}>(x); },
        {4.3782553813482601692e-27, 0.0033576742445590343082, 0.063464005521486248222, 0.15663084375911141702,
         0.34657358977997265496, 0.34657359027997265471, 0.34657359077997265496, 0.48703849209005334044,
         0.65663084375911141702, 1.5242936757868710294, 2.5, 7.75, 25.0});
  check("log_sigmoid", [](auto x) { return sw::log_sigmoid(x); },
        {-30.000000000000093576, -2.5788897342925496233, -1.313261687518222834, -0.97407698418010668087,
         -0.69314718105994530954, -0.69314718055994530942, -0.69314718005994530954, -0.57593941987884356221,
         -0.47407698418010668087, -0.2014132779827524095, -0.078889734292549623344, -0.00043064979763881981959,
         -1.3887943864867583102e-11});
  check("leaky_relu", [](auto x) { return sw::leaky_relu(x, 0.25); },
        {-7.5, -0.625, -0.25, -0.125, -2.5e-10, 0, 1e-9, 0.25, 0.5, 1.5, 2.5, 7.75, 25});
  check("elu", [](auto x) { return sw::elu(x, 1.5); },
        {-1.4999999999998596357, -1.3768725020641518072, -0.94818083824283651761, -0.59020401043104986459,
         -1.4999999992500000937e-9, 0.0, 1.0000000000000000623e-9, 0.25, 0.5, 1.5, 2.5, 7.75, 25.0});
  check("glu", [](auto x) { return sw::glu<0>(sw::cat<0>(x, sw::scale(x, 0.5))); },
        {-9.1770668077687417544e-6, -0.5567503470632721325, -0.37754066879814543536, -0.21891174955710094799,
         -4.9999999987500003114e-10, 0.0, 5.0000000012500003114e-10, 0.13280234334343906431, 0.28108825044289905201,
         1.0187680487630894597, 1.9432496529367278675, 7.5924242615943946559, 24.999906834017895336});
  check("swiglu", [](auto x) { return sw::swiglu(x, sw::full_like(x, 0.75)); },
        {-2.1054651679888422646e-12, -0.14223408753983165849, -0.20170606602749634056, -0.14157775079930453826,
         -3.7499999981250002336e-10, 0.0, 3.7500000018750002336e-10, 0.10540809391608714451, 0.23342224920069546174,
         0.91977128571784911706, 1.7327659124601683415, 5.8099973869648006758, 18.749999999739601053});
  check("geglu, reglu", [](auto x) { return sw::sub(sw::geglu(x, x), sw::sub(sw::mul(sw::gelu(x), x), sw::reglu(x, x))); },
        {0, 0, 0, 0, 0, 0, 1e-18, 0.0625, 0.25, 2.25, 6.25, 60.0625, 625});
}

TEST_CASE("rounding: to even, away from no zero's sign, and beyond all fractions") {
  const numbers x{-2.5, -1.5, -0.5, -0.25, -0.0, 0.5, 0.75, 1.5, 2.5, 4503599627370497.5, -4503599627370495.5, 1e300, 3.0};
  const numbers round = at<double>(x, [](auto v) { return sw::round(v); });
  const numbers floor = at<double>(x, [](auto v) { return sw::floor(v); });
  const numbers ceil = at<double>(x, [](auto v) { return sw::ceil(v); });
  for (std::size_t i = 0; i < x.size(); ++i) {
    INFO(x[i]);
    CHECK(round[i] == std::nearbyint(x[i]));
    CHECK(floor[i] == std::floor(x[i]));
    CHECK(ceil[i] == std::ceil(x[i]));
    CHECK(std::signbit(round[i]) == std::signbit(x[i]));
    CHECK(std::signbit(floor[i]) == std::signbit(std::floor(x[i])));
    CHECK(std::signbit(ceil[i]) == std::signbit(std::ceil(x[i])));
  }
}

TEST_CASE("further elementwise functions: special numbers, as PyTorch's") {
  const numbers x{nan_, inf, -inf, 0, -0.0, 1e-300, -1e-300, 1e300, -1e300, -1, -1.5, 709.5, -800};
  const auto check_at = [&](auto f, const std::function<double(double)>& want) {
    const numbers got = at<double>(x, f);
    for (std::size_t i = 0; i < x.size(); ++i) {
      INFO(x[i], " gives ", got[i], ", not ", want(x[i]));
      CHECK(close(got[i], want(x[i]), 1e-15));
    }
  };
  check_at([](auto v) { return sw::floor(v); }, [](double v) { return std::floor(v); });
  check_at([](auto v) { return sw::ceil(v); }, [](double v) { return std::ceil(v); });
  check_at([](auto v) { return sw::round(v); }, [](double v) { return std::nearbyint(v); });
  check_at([](auto v) { return sw::erf(v); }, [](double v) { return std::erf(v); });
  check_at([](auto v) { return sw::log1p(v); }, [](double v) { return std::log1p(v); });
  check_at([](auto v) { return sw::expm1(v); }, [](double v) { return std::expm1(v); });
  check_at([](auto v) { return sw::softplus(v); }, [](double v) { return v > 20 ? v : std::log1p(std::exp(v)); });
  check_at([](auto v) { return sw::log_sigmoid(v); }, [](double v) { return v < -700 ? v : -std::log1p(std::exp(-v)); });
  check_at([](auto v) { return sw::leaky_relu(v); }, [](double v) { return v > 0 ? v : 0.01 * v; });
  check_at([](auto v) { return sw::elu(v); }, [](double v) { return v > 0 ? v : std::expm1(v); });
  check_at([](auto v) { return sw::isnan(v); }, [](double v) { return double(std::isnan(v)); });
  check_at([](auto v) { return sw::isinf(v); }, [](double v) { return double(std::isinf(v)); });
  check_at([](auto v) { return sw::isfinite(v); }, [](double v) { return double(std::isfinite(v)); });
  check_at([](auto v) { return sw::logical_not(v); }, [](double v) { return double(v == 0); });
  const auto small = [](auto v) { return sw::lt(sw::abs(v), 2); };
  check_at([=](auto v) { return sw::logical_and(v, small(v)); }, [](double v) { return double(v != 0 && std::abs(v) < 2); });
  check_at([=](auto v) { return sw::logical_or(v, small(v)); }, [](double v) { return double(v != 0 || std::abs(v) < 2); });
  check_at([=](auto v) { return sw::logical_xor(v, small(v)); },
           [](double v) { return double((v != 0) != (std::abs(v) < 2)); });
}

TEST_CASE("expm1 and log1p: within two units in the last place, from the smallest numbers to the largest") {
  double worst[2]{};
  const auto one = [&](auto x) {
    using T = decltype(x);
    const auto exact = static_cast<long double>(x);
    worst[0] = std::fmax(worst[0], units_off<T>(sw::host::vector_math::expm1(x), std::expm1(exact)));
    worst[1] = std::fmax(worst[1], units_off<T>(sw::host::vector_math::log1p(x), std::log1p(exact)));
  };
  const auto both = [&](double x) {
    one(x);
    one(static_cast<float>(x));
  };
  for (int i = -60000; i <= 60000; ++i) {
    both(i * 0.0131);
    both(i * 0.00011);
    both(i * 0.0000017);
  }
  for (long double v = 5e-324L; v < 1e308L; v *= 1.01L) both(static_cast<double>(v)), both(static_cast<double>(-v));
  CHECK(worst[0] < 2);
  CHECK(worst[1] < 2);
  CHECK(worst[0] > 0.5);  // nothing is correctly rounded everywhere: it was measured
}

TEST_CASE("any, all: along dims, over all of them, and of nothing") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = type<sw::shape<3, 2>>::distribute(on, numbers{0, 0, 0, nan_, 4, -5});
    CHECK(whole(sw::any<1>(x)) == numbers{0, 1, 1});
    CHECK(whole(sw::all<1>(x)) == numbers{0, 0, 1});
    CHECK(whole(sw::any<0>(x)) == numbers{1, 1});
    CHECK(whole(sw::all<0>(x)) == numbers{0, 0});
    CHECK(whole(sw::any(x)) == numbers{1});
    CHECK(whole(sw::all(x)) == numbers{0});
    CHECK(whole(sw::all<-1>(sw::gt(x, -9), sw::keepdim)) == numbers{1, 0, 1});
    CHECK(sw::any<1>(x, sw::keepdim).sp.rank == 2);
    const auto whole_numbers = sw::cast<std::int32_t>(type<sw::shape<2>>::distribute(on, numbers{3, 0}));
    CHECK(whole(sw::isfinite(whole_numbers)) == numbers{1, 1});
    CHECK(whole(sw::isinf(whole_numbers)) == numbers{0, 0});
    CHECK(whole(sw::isnan(whole_numbers)) == numbers{0, 0});
    CHECK(whole(sw::logical_not(whole_numbers)) == numbers{0, 1});
    const auto none = sw::narrow<1, 0, 0>(x);
    CHECK(whole(sw::any<1>(none)) == numbers{0, 0, 0});
    CHECK(whole(sw::all<1>(none)) == numbers{1, 1, 1});
  });
}

#define SHARDWISE_FUNCTION(name, ...)                                      \
  struct name {                                                            \
    constexpr auto operator()(const auto& x) const { return __VA_ARGS__; } \
  };
SHARDWISE_FUNCTION(of_erf, sw::erf(x))
SHARDWISE_FUNCTION(of_log1p, sw::log1p(x* x))
SHARDWISE_FUNCTION(of_expm1, sw::expm1(x))
SHARDWISE_FUNCTION(of_softplus, sw::softplus<sw::softplus_options{.beta = 1.5, .threshold = 2}>(x))
SHARDWISE_FUNCTION(of_log_sigmoid, sw::log_sigmoid(x))
SHARDWISE_FUNCTION(of_leaky, sw::leaky_relu(x, 0.2))
SHARDWISE_FUNCTION(of_elu, sw::elu(x, 0.7))
SHARDWISE_FUNCTION(of_glu, sw::glu(x))
SHARDWISE_FUNCTION(of_rounded, x* sw::round(sw::floor(x) + sw::ceil(x)))
#undef SHARDWISE_FUNCTION
struct of_swiglu {
  constexpr auto operator()(const auto& gate, const auto& up) const { return sw::swiglu(gate, up); }
};

TEST_CASE("further elementwise functions: gradients against differences") {
  using shape = sw::shape<5, 4>;
  CHECK(sw::gradcheck<of_erf, shape>() == 20);
  CHECK(sw::gradcheck<of_log1p, shape>() == 20);
  CHECK(sw::gradcheck<of_expm1, shape>() == 20);
  CHECK(sw::gradcheck<of_softplus, shape>() == 20);
  CHECK(sw::gradcheck<of_log_sigmoid, shape>() == 20);
  CHECK(sw::gradcheck<of_leaky, shape>() == 20);
  CHECK(sw::gradcheck<of_elu, shape>() == 20);
  CHECK(sw::gradcheck<of_glu, shape>() == 20);
  CHECK(sw::gradcheck<of_rounded, shape>() == 20);
  CHECK(sw::gradcheck<of_swiglu, shape, sw::shape<4>>() == 24);
}

// PyTorch: x > 0 decides, so that 0 is of the other side.
TEST_CASE("further elementwise functions: gradients where they bend") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto zero = type<sw::shape<1>>::distribute(on, numbers{0.0});
    const auto slope = [&](auto f) { return whole(std::get<1>(sw::value_and_grad<decltype(f), 0>(zero)))[0]; };
    CHECK(slope([](const auto& x) { return sw::sum(sw::leaky_relu(x, 0.2)); }) == 0.2);
    CHECK(slope([](const auto& x) { return sw::sum(sw::elu(x, 0.7)); }) == 0.7);
    CHECK(slope([](const auto& x) { return sw::sum(sw::softplus(x)); }) == 0.5);
    CHECK(slope([](const auto& x) { return sw::sum(sw::round(x) + x); }) == 1);
  });
}

// On a mesh, at once and as a program: the same bits as on one rank, in vectors and apart.
struct several {
  constexpr auto operator()(const auto& x, const auto& y) const {
    const auto a = sw::erf(x) + sw::log1p(y * y) + sw::expm1(x) + sw::softplus(y) + sw::leaky_relu(x) + sw::elu(y);
    return sw::swiglu(a, y) * sw::cast<double>(sw::logical_or(sw::isfinite(x), sw::any<1>(y, sw::keepdim))) + sw::floor(x) +
           sw::ceil(y) + sw::round(x + y);
  }
};
template <int N>
numbers on_mesh() {
  using many = sw::mesh<line<N>>;
  using tensor = sw::dtensor_of<double, sw::shape<10, 9>, many, sw::on<line<N>, sw::shard<0>>>;
  numbers all;
  sw::launch<many>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = tensor::distribute(on, figures::some(90, 0)), y = tensor::distribute(on, figures::some(90, 1));
    const auto got = gradients_both_ways<several, 0, 1>(rank, x, y);
    auto list = whole(std::get<0>(got));
    for (const auto& g : {whole(std::get<1>(got)), whole(std::get<2>(got))}) list.insert(list.end(), g.begin(), g.end());
    if (rank.index() == 0) all = list;
  });
  return all;
}
TEST_CASE("further elementwise functions: one rank's bits on 2, 3 and 4, at once and compiled") {
  const numbers one = on_mesh<1>();
  CHECK(one.size() == 270);
  CHECK(on_mesh<2>() == one);
  CHECK(on_mesh<3>() == one);
  CHECK(on_mesh<4>() == one);
}
TEST_CASE("further elementwise functions: the same bits in vectors and apart") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = type<sw::shape<31, 3>>::distribute(on, figures::some(93, 2));
    const auto f = [](const auto& v) { return sw::erf(v) + sw::expm1(v) + sw::softplus(v) + sw::swiglu(v, v) + sw::elu(v); };
    CHECK(whole(f(x)) == whole(sw::transpose<0, 1>(f(sw::transpose<0, 1>(x)))));
  });
}

}  // namespace
