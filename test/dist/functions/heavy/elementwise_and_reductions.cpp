// SPDX-License-Identifier: Apache-2.0
// Elementwise functions, reductions and searches on ranks: values and gradients equal one rank's for every placement,
// in implicit mode and as written, with uneven and empty shards; partial largest elements made whole.
#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

namespace {

using namespace test;

template <int N>
struct rows : sw::axis<N> {};
template <int N>
struct cols : sw::axis<N> {};
template <int M, int N>
using grid = sw::mesh<rows<M>, cols<N>>;
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;
using numbers = std::vector<double>;
using results = std::vector<numbers>;

numbers some(std::int64_t n, int salt) {
  numbers v;
  for (std::int64_t i = 0; i < n; ++i) v.push_back(static_cast<double>((i * 29 + salt * 17) % 23) / 8 - 1.2);
  return v;
}

void compare(const results& many, const results& single) {
  REQUIRE(many.size() == single.size());
  for (std::size_t k = 0; k < single.size(); ++k) {
    REQUIRE(many[k].size() == single[k].size());
    for (std::size_t i = 0; i < single[k].size(); ++i) CHECK(std::abs(many[k][i] - single[k][i]) <= 1e-11);
  }
}

// --- implicit mode
// ------------------------------------------------------------------------------------------------------

struct pointwise {
  constexpr auto operator()(const auto& x, const auto& b) const {
    const auto positive = sw::exp(x) + sw::square(b);
    const auto chosen = sw::where(sw::lt(x, b), sw::sigmoid(x) * 2, sw::silu(b) - x);
    return sw::sqrt(positive) * sw::maximum(x, b) / (sw::clamp(x, -0.5, 0.7) + 3.0) + sw::log(positive) * chosen +
           sw::masked_fill(sw::abs(x), sw::ge(b, 0.5), 0.25) - sw::lerp(x, b, 0.3);
  }
};
struct reductions {
  constexpr auto operator()(const auto& x, const auto& b) const {
    const auto y = x * x + b;
    return sw::var<0>(y) + sw::std<0>(y - b, 0) + sw::mean<0>(sw::log_softmax<1>(y)) + sw::sum<0>(sw::softmax<0>(y) * x);
  }
};
struct searches {
  constexpr auto operator()(const auto& x, const auto& b) const {
    const auto [values, indices] = sw::topk<3>(x * b);
    return values * 2 - sw::topk<3, 1, false>(x).values;
  }
};

// The whole result and gradients of F.
template <class F, int M, int N, class X0, class X1, class B0, class B1>
results placed() {
  results whole;
  sw::launch<grid<M, N>>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<double, sw::shape<5, 6>, grid<M, N>, X0, X1>::distribute(on, some(30, 1));
    const auto b = sw::dtensor_of<double, sw::shape<6>, grid<M, N>, B0, B1>::distribute(on, some(6, 3));
    const auto all = gradients_both_ways<sw::implicitly<F>, 0, 1>(rank, x, b);
    std::apply(
        [&](const auto&... r) {
          const results mine{values_of(sw::contiguous(r).full_tensor().to_local())...};
          if (rank.index() == 0) whole = mine;
        },
        all);
  });
  return whole;
}
template <class F>
void check_placements() {
  const results single = placed<F, 1, 1, R, R, R, R>();
  compare(placed<F, 2, 2, S<0>, S<1>, R, S<0>>(), single);
  compare(placed<F, 4, 1, S<0>, R, U, R>(), single);  // 2, 2, 1, none
  compare(placed<F, 1, 3, R, P, R, P>(), single);
}

// --- as written
// ---------------------------------------------------------------------------------------------------------

// Reductions over a dim that the ranks share: partial with that reduction, then whole.
template <int N>
struct shared {
  constexpr auto operator()(const auto& x) const {
    const auto top = sw::amax<0>(x);
    return std::tuple{sw::redistribute<rows<N>, R>(top),
                      sw::redistribute<rows<N>, R>(sw::max(top)),
                      sw::redistribute<rows<N>, R>(sw::amin<0, 1>(x)),
                      sw::redistribute<rows<N>, R>(sw::prod<0>(x, sw::keepdim)),
                      sw::redistribute<rows<N>, S<0>>(top),
                      sw::redistribute<rows<N>, R>(sw::var_over<rows<N>, 0>(x))};
  }
};
template <int N>
struct variance {
  constexpr auto operator()(const auto& x) const {
    return sw::sum(sw::sqrt(sw::redistribute<rows<N>, U>(sw::var_over<rows<N>, 0>(x))));
  }
};

template <int N, class X>
numbers variance_gradient() {
  numbers whole;
  sw::launch<grid<N, 1>>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<double, sw::shape<5, 4>, grid<N, 1>, X, R>::distribute(on, some(20, 4));
    const auto all = gradients_both_ways<variance<N>, 0>(rank, x);
    const numbers mine = values_of(std::get<1>(all).full_tensor().to_local());
    if (rank.index() == 0) whole = mine;
  });
  return whole;
}

template <int N>
void check_shared(const numbers& values) {
  sw::launch<grid<N, 1>>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<double, sw::shape<5, 4>, grid<N, 1>, S<0>, R>::distribute(on, values);
    static_assert(std::remove_cvref_t<decltype(sw::amax<0>(x))>::sp.place[0] == sw::partial_value(sw::reduction::max) ||
                  N == 1);
    const auto [top, most, least, product, split, var] = both_ways<shared<N>>(rank, x);
    numbers want_top(4, -std::numeric_limits<double>::infinity()), want_product(4, 1), mean(4, 0), want_var(4, 0);
    double want_least = values[0];
    for (std::size_t i = 0; i < 20; ++i) {
      want_top[i % 4] = std::max(want_top[i % 4], values[i]);
      want_product[i % 4] *= values[i];
      want_least = std::min(want_least, values[i]);
      mean[i % 4] += values[i] / 5;
    }
    for (std::size_t i = 0; i < 20; ++i) want_var[i % 4] += (values[i] - mean[i % 4]) * (values[i] - mean[i % 4]) / 4;
    CHECK(values_of(top.to_local()) == want_top);
    CHECK(most.item() == *std::max_element(want_top.begin(), want_top.end()));
    CHECK(least.item() == want_least);
    CHECK(values_of(split.full_tensor().to_local()) == want_top);
    compare({values_of(product.to_local()), values_of(var.to_local())}, {want_product, want_var});
  });
}

// max_norm / (|g| + eps), at most 1, times the gradient: the squares' partial sum is made whole before the root is
// taken and the epsilon is added, and no other order compiles.
template <int N>
struct clipped {
  constexpr auto operator()(const auto& g) const {
    const auto norm = sw::sqrt(sw::redistribute<rows<N>, U>(sw::sum(sw::square(g))));
    return g * sw::clamp_max(0.5 / (norm + 1e-3), 1);
  }
};

}  // namespace

TEST_CASE("silent bug: pytorch#149768, pytorch#159856, a norm of sharded gradients and its epsilon count once") {
  const numbers g = some(20, 6);
  double square = 0;
  for (double v : g) square += v * v;
  numbers want = g;
  for (double& v : want) v *= std::min(1.0, 0.5 / (std::sqrt(square) + 1e-3));
  sw::launch<grid<4, 1>>([&](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<double, sw::shape<5, 4>, grid<4, 1>, S<0>, R>::distribute(on, g);
    const auto [r] = both_ways<clipped<4>>(rank, x);
    compare({values_of(r.full_tensor().to_local())}, {want});
  });
}

TEST_CASE("implicit mode: elementwise functions do not depend on mesh and placement") { check_placements<pointwise>(); }
TEST_CASE("implicit mode: reductions and softmax do not depend on mesh and placement") { check_placements<reductions>(); }
TEST_CASE("implicit mode: searches do not depend on mesh and placement") { check_placements<searches>(); }

TEST_CASE("reductions over a sharded dim are partial, and whole after an all-reduce: 1 to 8 ranks") {
  const numbers values = some(20, 2);
  check_shared<1>(values);
  check_shared<2>(values);
  check_shared<3>(values);
  check_shared<4>(values);
  check_shared<8>(values);
}

TEST_CASE("a NaN stays the largest and the smallest, whichever rank has it") {
  for (const std::size_t at : {0, 7, 19}) {
    numbers values = some(20, 2);
    values[at] = std::numeric_limits<double>::quiet_NaN();
    sw::launch<grid<3, 1>>([&](auto& rank) {
      sw::eager on(rank);
      const auto x = sw::dtensor_of<double, sw::shape<5, 4>, grid<3, 1>, S<0>, R>::distribute(on, values);
      CHECK(std::isnan(sw::max(x).item()));
      CHECK(std::isnan(sw::min(x).item()));
    });
  }
}

TEST_CASE("a variance over a sharded dim is exact for uneven and empty shards, and so is its gradient") {
  const numbers single = variance_gradient<1, S<0>>();
  compare({variance_gradient<2, S<0>>(), variance_gradient<3, S<0>>(), variance_gradient<4, S<0>>()},
          {single, single, single});
}
