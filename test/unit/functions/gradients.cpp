// SPDX-License-Identifier: Apache-2.0
// The pullbacks of functions against central differences; what ties, bounds and zeros do, which differences do not see.
#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <cmath>

namespace {

using namespace test;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;
struct two : sw::axis<2> {};
using pair = sw::mesh<two>;
template <class Shape>
using type = sw::dtensor_of<double, Shape, mesh>;
using numbers = std::vector<double>;

// Positive, apart from each other by more than differences step.
numbers some(std::int64_t n, int salt) {
  numbers v;
  for (std::int64_t i = 0; i < n; ++i)
    v.push_back(0.3 + 0.07 * static_cast<double>((i * 7 + salt * 5) % 23) + 0.001 * static_cast<double>(i));
  return v;
}

// The function's result, weighted so that no gradient vanishes by symmetry, summed.
template <class F>
struct weighted {
  constexpr auto operator()(const auto& a, const auto& b, const auto& w) const { return sw::sum(F{}(a, b) * w); }
};

template <class F, class Out>
void check_gradients() {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    numbers a = some(12, 1), b = some(4, 3), weight;
    for (std::int64_t i = 0; i < sw::numel(type<Out>::sp); ++i)
      weight.push_back(std::sin(1.7 * static_cast<double>(i) + 0.3));
    const auto w = type<Out>::distribute(on, weight);
    const auto x = [&] { return type<sw::shape<3, 4>>::distribute(on, a); };
    const auto y = [&] { return type<sw::shape<4>>::distribute(on, b); };
    const auto all = gradients_both_ways<weighted<F>, 0, 1>(rank, x(), y(), w);
    const numbers da = values_of(std::get<1>(all).to_local()), db = values_of(std::get<2>(all).to_local());
    const auto difference = [&](double& e) {
      constexpr double h = 1e-5;
      const double before = e;
      e = before + h;
      const double up = weighted<F>{}(x(), y(), w).item();
      e = before - h;
      const double down = weighted<F>{}(x(), y(), w).item();
      e = before;
      return (up - down) / (2 * h);
    };
    double largest = 0;
    for (double d : da) largest = std::max(largest, std::abs(d));
    CHECK(largest > 1e-3);
    for (std::size_t i = 0; i < a.size(); ++i)
      CHECK(da[i] == doctest::Approx(difference(a[i])).epsilon(1e-6).scale(largest));
    for (std::size_t i = 0; i < b.size(); ++i)
      CHECK(db[i] == doctest::Approx(difference(b[i])).epsilon(1e-6).scale(largest));
  });
}

using full = sw::shape<3, 4>;
using by_row = sw::shape<3>;
using by_column = sw::shape<4>;
using by_column_kept = sw::shape<1, 4>;

}  // namespace

// a (3, 4), b (4); b is in all of them so that its gradient is there
#define SHARDWISE_CASE(name, extents, ...)                                                \
  namespace {                                                                             \
  struct name {                                                                           \
    constexpr auto operator()(const auto& a, const auto& b) const { return __VA_ARGS__; } \
  };                                                                                      \
  }                                                                                       \
  TEST_CASE("gradient: " #name) { check_gradients<name, extents>(); }

SHARDWISE_CASE(signs, full, sw::abs(a - b) + sw::neg(a * b) * sw::sign(a))
SHARDWISE_CASE(exponentials, full, sw::exp(a - b) * sw::log(a + b))
SHARDWISE_CASE(roots, full, sw::sqrt(a* b) + sw::rsqrt(a + b) + sw::reciprocal(a * a + b))
SHARDWISE_CASE(sigmoids, full, sw::sigmoid(a - b) + sw::silu(a * b))
SHARDWISE_CASE(activations, full,
               sw::tanh(a - b) + sw::relu(a - 0.7) * sw::gelu(a * b) + sw::gelu<sw::gelu_form::tanh>(b - a))
SHARDWISE_CASE(circles, full, sw::sin(a* b) + sw::cos(a + b))
SHARDWISE_CASE(powers, full, sw::pow(a* b, 2.5) + sw::pow(a, -1) * sw::square(b) + sw::pow(a + b, 0))
SHARDWISE_CASE(clamped, full, sw::clamp(a - b, -0.31, 0.42) * a)
SHARDWISE_CASE(quotients, full, a / b + b / (a + 1.0) + 2.0 / a - (3.0 - b / 4))
SHARDWISE_CASE(extremes_of_two, full, sw::maximum(a, b) * sw::minimum(b, a * 1.1))
SHARDWISE_CASE(chosen, full, sw::where(sw::lt(a, b), a* a, b * 3) + sw::masked_fill(a * b, sw::gt(a, 1.0), 5.0))
SHARDWISE_CASE(between, full, sw::lerp(a, b, 0.3) * sw::lerp(b, a, 0.8))
SHARDWISE_CASE(largest_and_smallest, by_row, sw::amax<1>(a* b) * sw::amin<-1>(a + b))
SHARDWISE_CASE(largest_kept, by_column_kept, sw::amax<0>(a - b, sw::keepdim))
SHARDWISE_CASE(products, by_row, sw::prod<1>(a - b))
SHARDWISE_CASE(products_of_columns, by_column, sw::prod<0>(a* b))
SHARDWISE_CASE(variances, by_row, sw::var<1>(a* b) + sw::std<1>(a + b, 0))
SHARDWISE_CASE(variance_of_columns, by_column, sw::var<0>(a* b))
SHARDWISE_CASE(softmax_of_columns, full, sw::softmax<0>(a* b) * a)
SHARDWISE_CASE(log_softmax_of, full, sw::log_softmax(a* b) + sw::log_softmax<0>(a - b))
SHARDWISE_CASE(log_sums, by_row, sw::logsumexp(a* b) + sw::sum<1>(sw::logsumexp<0>(a - b, sw::keepdim) * b * a))
SHARDWISE_CASE(log_sums_of_columns, by_column, sw::logsumexp<0>(a* b))
SHARDWISE_CASE(taken, full, sw::topk<4>(a* b).values* a)
SHARDWISE_CASE(taken_of_columns, full, sw::topk<3, 0, false>(a - b).values* b)

namespace {

struct at_ties {
  constexpr auto operator()(const auto& x) const { return sw::sum(sw::amax<1>(x)); }
};
struct shared {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::sum(sw::maximum(x, y)); }
};
struct bounded {
  constexpr auto operator()(const auto& x) const { return sw::sum(sw::clamp(x, -1, 1)); }
};
struct product {
  constexpr auto operator()(const auto& x) const { return sw::sum(sw::prod<1>(x)); }
};
struct best {
  constexpr auto operator()(const auto& x) const { return sw::sum(sw::topk<1>(x).values); }
};

}  // namespace

// The cotangent of a permuted sum is no dense tensor; a mean over ranks divides it.
struct permuted_mean {
  constexpr auto operator()(const auto& x) const {
    return sw::sum(sw::permute<2, 0, 1>(sw::redistribute<two, sw::replicate>(x)));
  }
};
TEST_CASE("gradients of a mean over ranks, through a permutation") {
  sw::launch<pair>([](auto& rank) {
    sw::eager on(rank);
    using averaged = sw::dtensor_of<double, sw::shape<2, 3, 2>, pair, sw::on<two, sw::partial<sw::reduction::avg>>>;
    const auto all = gradients_both_ways<permuted_mean, 0>(rank, averaged::distribute(on, some(12, 1)));
    CHECK(values_of(std::get<1>(all).to_local()) == numbers(12, 0.5));
  });
}

TEST_CASE("gradients at ties, bounds and zeros are PyTorch's") {
  sw::launch<mesh>([](auto& rank) {
    sw::eager on(rank);
    const auto x = type<sw::shape<2, 3>>::distribute(on, numbers{1, 1, 0, -1, 2, 5});
    const auto gradient = [](const auto& all) { return values_of(std::get<1>(all).to_local()); };
    CHECK(gradient(sw::value_and_grad<at_ties, 0>(x)) == numbers{0.5, 0.5, 0, 0, 0, 1});
    const auto y = type<sw::shape<2, 3>>::distribute(on, numbers{1, 0, 1, -1, 3, 4});
    CHECK(gradient(sw::value_and_grad<shared, 0>(x, y)) == numbers{0.5, 1, 0, 0.5, 0, 1});
    CHECK(gradient(sw::value_and_grad<bounded, 0>(x)) == numbers{1, 1, 1, 1, 0, 0});
    CHECK(gradient(sw::value_and_grad<best, 0>(x)) == numbers{1, 0, 0, 0, 0, 1});
    // no zero, one, two
    const auto z = type<sw::shape<3, 3>>::distribute(on, numbers{2, 3, 4, 2, 0, 4, 0, 3, 0});
    CHECK(gradient(sw::value_and_grad<product, 0>(z)) == numbers{12, 8, 6, 0, 8, 0, 0, 0, 0});
  });
}
