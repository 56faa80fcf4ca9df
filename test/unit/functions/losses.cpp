// SPDX-License-Identifier: Apache-2.0
// Losses against plain loops in long double, on 1 to 4 ranks, at once and compiled, and their gradients against differences.
#include <both_ways.hpp>
#include <figures.hpp>

#include <shardwise/laws/gradcheck.hpp>
#include <shardwise/more_functions.hpp>

#include <doctest/doctest.h>

#include <cmath>
#include <functional>
#include <limits>
#include <vector>

namespace {

using namespace test;
using figures::some;
using figures::whole;
using numbers = std::vector<double>;
using real = long double;
using R = sw::loss_reduction;

template <int N>
struct line : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<line<N>>;
constexpr int rows = 7, classes = 5;
template <int N, class T = double>
using matrix = sw::dtensor_of<T, sw::shape<rows, classes>, mesh<N>, sw::on<line<N>, sw::shard<0>>>;
template <int N>
using ids = sw::dtensor_of<std::int32_t, sw::shape<rows>, mesh<N>, sw::on<line<N>, sw::shard<0>>>;
template <int N>
using per_class = sw::dtensor_of<double, sw::shape<classes>, mesh<N>>;

const std::vector<std::int32_t> labels{0, 4, 2, -1, 1, 3, 2};  // the fourth is ignored
const std::vector<std::int32_t> counted{0, 4, 2, 2, 1, 3, 2};
const numbers weights{1, 0.5, 2, 0.25, 3};

numbers probabilities() {
  numbers p = some(rows * classes, 2);
  for (int i = 0; i < rows; ++i) {
    double sum = 0;
    for (int c = 0; c < classes; ++c)
      sum += p[static_cast<std::size_t>(i * classes + c)] = std::abs(p[static_cast<std::size_t>(i * classes + c)]);
    for (int c = 0; c < classes; ++c) p[static_cast<std::size_t>(i * classes + c)] /= sum;
  }
  return p;
}

// All losses of a mesh's ranks, one after the other.
template <class F>
void on_meshes(F f, const numbers& want, double tolerance = 2e-15) {
  const auto on = [&]<int N>(std::integral_constant<int, N>) {
    numbers got;
    sw::launch<mesh<N>>([&](auto& rank) {
      sw::eager e(rank);
      const auto x = matrix<N>::distribute(e, some(rows * classes, 0)), p = matrix<N>::distribute(e, probabilities());
      const numbers all = f(rank, e, x, p, std::integral_constant<int, N>{});
      if (rank.index() == 0) got = all;
    });
    INFO("on ", N, " ranks");
    REQUIRE(got.size() == want.size());
    for (std::size_t i = 0; i < got.size(); ++i)
      CHECK_MESSAGE(std::abs(got[i] - want[i]) <= tolerance * std::fmax(1.0, std::abs(want[i])), "loss ", i, ": ", got[i],
                    " not ", want[i]);
  };
  on(std::integral_constant<int, 1>{});
  on(std::integral_constant<int, 2>{});
  on(std::integral_constant<int, 3>{});
  on(std::integral_constant<int, 4>{});
}
// What reductions make of elements, and none: the sum of the elements times their places.
numbers reduced(const std::function<real(real, real)>& f) {
  const numbers x = some(rows * classes, 0), y = probabilities();
  real sum = 0;
  for (std::size_t i = 0; i < x.size(); ++i) sum += f(x[i], y[i]);
  return {static_cast<double>(sum / (rows * classes)), static_cast<double>(sum), static_cast<double>(sum / rows)};
}

struct squared {
  template <R Reduction>
  static constexpr auto of(const auto& x, const auto& y) {
    return sw::mse_loss<Reduction>(x, y);
  }
};
struct absolute {
  template <R Reduction>
  static constexpr auto of(const auto& x, const auto& y) {
    return sw::l1_loss<Reduction>(x, y);
  }
};
struct smooth {
  template <R Reduction>
  static constexpr auto of(const auto& x, const auto& y) {
    return sw::smooth_l1_loss<Reduction>(x, y, 0.5);
  }
};
struct smooth_without {
  template <R Reduction>
  static constexpr auto of(const auto& x, const auto& y) {
    return sw::smooth_l1_loss<Reduction>(x, y, 0);
  }
};
struct huber {
  template <R Reduction>
  static constexpr auto of(const auto& x, const auto& y) {
    return sw::huber_loss<Reduction>(x, y, 0.5);
  }
};
struct binary {
  template <R Reduction>
  static constexpr auto of(const auto& x, const auto& y) {
    return sw::binary_cross_entropy_with_logits<Reduction>(x, y);
  }
};
struct divergence {
  template <R Reduction>
  static constexpr auto of(const auto& x, const auto& y) {
    return sw::kl_div<Reduction>(x, y);
  }
};
struct divergence_of_logarithms {
  template <R Reduction>
  static constexpr auto of(const auto& x, const auto& y) {
    return sw::kl_div_log_target<Reduction>(x, y);
  }
};
template <class Loss, R Reduction>
struct one_of {
  constexpr auto operator()(const auto& x, const auto& y) const { return Loss::template of<Reduction>(x, y); }
};
template <class Loss>
void check_elements(const std::function<real(real, real)>& f) {
  on_meshes(
      [](auto& rank, auto&, const auto& x, const auto& y, auto) {
        const auto [mean] = both_ways<one_of<Loss, R::mean>>(rank, x, y);
        const auto [each] = both_ways<one_of<Loss, R::none>>(rank, x, y);
        CHECK(whole(each).size() == rows * classes);
        CHECK(whole(sw::mean(each)) == whole(mean));
        return numbers{whole(mean)[0], whole(Loss::template of<R::sum>(x, y))[0],
                       whole(Loss::template of<R::batchmean>(x, y))[0]};
      },
      reduced(f));
  CHECK(sw::gradcheck<one_of<Loss, R::none>, sw::shape<3, 4>, sw::shape<3, 4>>(3) == 24);
}
real softplus(real x) { return std::fmax(x, 0.0L) + std::log1p(std::exp(-std::fabs(x))); }

TEST_CASE("mse_loss, l1_loss, smooth_l1_loss, huber_loss") {
  check_elements<squared>([](real x, real y) { return (x - y) * (x - y); });
  check_elements<absolute>([](real x, real y) { return std::fabs(x - y); });
  check_elements<smooth_without>([](real x, real y) { return std::fabs(x - y); });
  const auto bent = [](real x, real y) {
    const real d = std::fabs(x - y);
    return d < 0.5L ? d * d : d - 0.25L;
  };
  check_elements<smooth>(bent);
  check_elements<huber>([=](real x, real y) { return 0.5L * bent(x, y); });
}
TEST_CASE("binary_cross_entropy_with_logits, kl_div_log_target") {
  check_elements<binary>([](real x, real y) { return y * softplus(-x) + (1 - y) * softplus(x); });
  check_elements<divergence_of_logarithms>([](real x, real y) { return std::exp(y) * (y - x); });
}
TEST_CASE("kl_div: targets that are 0 count nothing") {
  on_meshes(
      [](auto& rank, auto&, const auto& x, const auto& y, auto) {
        const auto [mean] = both_ways<one_of<divergence, R::mean>>(rank, x, y);
        return numbers{whole(mean)[0], whole(sw::kl_div<R::sum>(x, y))[0], whole(sw::kl_div<R::batchmean>(x, y))[0]};
      },
      reduced([](real x, real y) { return y * (std::log(y) - x); }));
  sw::launch<mesh<1>>([](auto& rank) {
    sw::eager e(rank);
    using pair = sw::dtensor_of<double, sw::shape<2>, mesh<1>>;
    const auto x = pair::distribute(e, numbers{-3, -0.5}), y = pair::distribute(e, numbers{0, 1});
    CHECK(whole(sw::kl_div<R::none>(x, y)) == numbers{0, 0.5});
    const auto g = sw::value_and_grad<one_of<divergence, R::sum>, 0>(x, y);
    CHECK(whole(std::get<1>(g)) == numbers{0, -1});
  });
}
// Digits: 1 - s is lost where s is near 1.
TEST_CASE("binary_cross_entropy_with_logits: sure answers have exact losses; weights of the positive") {
  sw::launch<mesh<1>>([](auto& rank) {
    sw::eager e(rank);
    using four = sw::dtensor_of<double, sw::shape<4>, mesh<1>>;
    const auto x = four::distribute(e, numbers{30, -30, 30, -800}), y = four::distribute(e, numbers{1, 0, 0, 1});
    const numbers got = whole(sw::binary_cross_entropy_with_logits<R::none>(x, y));
    const numbers want{9.3576229688397367794e-14, 9.3576229688397367794e-14, 30.000000000000093576, 800};
    for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(got[i] - want[i]) <= 1e-15 * want[i]);
  });
  on_meshes(
      [](auto& rank, auto& e, const auto& x, const auto& y, auto n) {
        const auto w = sw::redistribute<line<n()>, sw::reduced>(per_class<n()>::distribute(e, weights));
        (void)rank;
        return numbers{whole(sw::binary_cross_entropy_with_logits(x, y, w))[0]};
      },
      [] {
        const numbers x = some(rows * classes, 0), y = probabilities();
        real sum = 0;
        for (std::size_t i = 0; i < x.size(); ++i)
          sum += weights[i % classes] * y[i] * softplus(-x[i]) + (1 - static_cast<real>(y[i])) * softplus(x[i]);
        return numbers{static_cast<double>(sum / (rows * classes))};
      }());
}

// --- cross entropy: the sum over rows of weighted minus log p, with everything that may be asked for -----------------------------

real log_likelihood(const numbers& x, int row, int c) {
  real sum = 0;
  for (int k = 0; k < classes; ++k) sum += std::exp(static_cast<real>(x[static_cast<std::size_t>(row * classes + k)]));
  return x[static_cast<std::size_t>(row * classes + c)] - std::log(sum);
}
// As PyTorch's documentation: l_n = -w[y] log p[y], mean over the weights of rows that count; smoothing of each class.
double cross_entropy(const std::vector<std::int32_t>& y, double share, const numbers& w, bool mean) {
  const numbers x = some(rows * classes, 0);
  real sum = 0, count = 0;
  for (int i = 0; i < rows; ++i) {
    const std::int32_t id = y[static_cast<std::size_t>(i)];
    if (id < 0) continue;
    const real own = w[static_cast<std::size_t>(id)];
    sum -= (1 - static_cast<real>(share)) * own * log_likelihood(x, i, id);
    for (int c = 0; c < classes; ++c) sum -= share / classes * w[static_cast<std::size_t>(c)] * log_likelihood(x, i, c);
    count += own;
  }
  return static_cast<double>(mean ? sum / count : sum);
}
struct smoothed {
  constexpr auto operator()(const auto& x, const auto& t, const auto&) const {
    return sw::cross_entropy(x, t, sw::label_smoothing{0.1});
  }
};
struct weighed {
  constexpr auto operator()(const auto& x, const auto& t, const auto& w) const {
    return sw::cross_entropy<sw::ignore_index<-1>>(x, t, sw::class_weights(w));
  }
};
struct with_both {
  constexpr auto operator()(const auto& x, const auto& t, const auto& w) const {
    return sw::cross_entropy<sw::ignore_index<-1>>(x, t, sw::class_weights(w), sw::label_smoothing{0.25});
  }
};
TEST_CASE("cross_entropy with label smoothing, class weights and ignored rows") {
  const numbers ones(classes, 1.0);
  on_meshes(
      [](auto& rank, auto& e, const auto& x, const auto&, auto n) {
        const auto t = ids<n()>::distribute(e, labels), all = ids<n()>::distribute(e, counted);
        const auto w = per_class<n()>::distribute(e, weights);
        const auto [a] = both_ways<smoothed>(rank, x, all, w);
        const auto [b, db] = gradients_both_ways<weighed, 0>(rank, x, t, w);
        const auto [c, dc] = gradients_both_ways<with_both, 0>(rank, x, t, w);
        (void)db;
        (void)dc;
        return numbers{
            whole(a)[0],
            whole(b)[0],
            whole(c)[0],
            whole(sw::cross_entropy<sw::ignore_index<-1>>(x, t, sw::label_smoothing{0.1}))[0],
            whole(sw::cross_entropy<sw::count_all, R::sum>(x, all, sw::label_smoothing{1}, sw::class_weights(w)))[0],
            whole(sw::sum(sw::cross_entropy_rows(x, all, sw::class_weights(w))))[0],
            whole(sw::cross_entropy(x, all, sw::label_smoothing{0}))[0],
        };
      },
      {cross_entropy(counted, 0.1, ones, true), cross_entropy(labels, 0, weights, true),
       cross_entropy(labels, 0.25, weights, true), cross_entropy(labels, 0.1, ones, true),
       cross_entropy(counted, 1, weights, false), cross_entropy(counted, 0, weights, false),
       cross_entropy(counted, 0, ones, true)},
      4e-15);
}

double soft_cross_entropy(double share, const numbers& w) {
  const numbers x = some(rows * classes, 0), p = probabilities();
  real sum = 0;
  for (int i = 0; i < rows; ++i)
    for (int c = 0; c < classes; ++c)
      sum -= ((1 - static_cast<real>(share)) * p[static_cast<std::size_t>(i * classes + c)] + share / classes) *
             w[static_cast<std::size_t>(c)] * log_likelihood(x, i, c);
  return static_cast<double>(sum / rows);
}
struct soft {
  constexpr auto operator()(const auto& x, const auto& p, const auto& w) const {
    return sw::cross_entropy(x, sw::soft_targets(p), sw::label_smoothing{0.3}, sw::class_weights(w));
  }
};
TEST_CASE("cross_entropy with targets that are probabilities") {
  on_meshes(
      [](auto& rank, auto& e, const auto& x, const auto& p, auto n) {
        const auto w = per_class<n()>::distribute(e, weights);
        const auto [a, dx, dp] = gradients_both_ways<soft, 0, 1>(rank, x, p, w);
        (void)dx;
        (void)dp;
        return numbers{whole(a)[0], whole(sw::cross_entropy(x, sw::soft_targets(p)))[0],
                       whole(sw::cross_entropy<R::sum>(x, sw::soft_targets(p)))[0] / rows};
      },
      {soft_cross_entropy(0.3, weights), soft_cross_entropy(0, numbers(classes, 1.0)),
       soft_cross_entropy(0, numbers(classes, 1.0))},
      4e-15);
}
struct soft_of_two {
  constexpr auto operator()(const auto& x, const auto& p) const {
    return sw::cross_entropy_rows(x, sw::soft_targets(p), sw::label_smoothing{0.3});
  }
};
// The class of each row is its number.
struct rows_of_ids {
  constexpr auto operator()(const auto& x, const auto& w) const {
    const auto t = sw::arange<std::int32_t, 4>(x);
    return sw::cross_entropy_rows(x, t, sw::class_weights(w), sw::label_smoothing{0.3}) + sw::sum(w);
  }
};
struct fixed {
  constexpr auto operator()(const auto& x) const { return rows_of_ids{}(x, sw::arange_from<double, 1, 5, 1>(x)); }
};
TEST_CASE("cross_entropy with options: gradients against differences") {
  CHECK(sw::gradcheck<soft_of_two, sw::shape<3, 4>, sw::shape<3, 4>>() == 24);
  CHECK(sw::gradcheck<fixed, sw::shape<4, 4>>() == 16);
}

TEST_CASE("losses refuse numbers out of their range") {
  sw::launch<mesh<1>>([](auto& rank) {
    sw::eager e(rank);
    const auto x = matrix<1>::distribute(e, some(rows * classes, 0)), y = matrix<1>::distribute(e, some(rows * classes, 1));
    const auto t = ids<1>::distribute(e, counted);
    CHECK_THROWS_WITH(sw::smooth_l1_loss(x, y, -1), doctest::Contains("; beta is at least 0"));
    CHECK_THROWS_WITH(sw::huber_loss(x, y, 0), doctest::Contains("; delta is above 0"));
    CHECK_THROWS_WITH(sw::cross_entropy(x, t, sw::label_smoothing{1.5}), doctest::Contains("; a share is from 0 to 1"));
    CHECK_THROWS_WITH(sw::cross_entropy(x, sw::soft_targets(y), sw::label_smoothing{-0.5}),
                      doctest::Contains("; a share is from 0 to 1"));
  });
}

}  // namespace
