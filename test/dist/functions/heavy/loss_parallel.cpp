// SPDX-License-Identifier: Apache-2.0
// Cross entropy over sharded classes: values and gradients equal the whole one's on 1 to 4 ranks, with uneven and empty
// shards, a data-parallel axis beside, ignored rows, and a head whose output stays sharded.
#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <cmath>

namespace {

using namespace test;

template <int N>
struct tp : sw::axis<N> {};
template <int N>
struct dp : sw::axis<N> {};
template <int D, int T>
using grid = sw::mesh<dp<D>, tp<T>>;
using R = sw::replicate;
using U = sw::reduced;
template <int D>
using S = sw::shard<D>;
using numbers = std::vector<double>;

constexpr std::int64_t batch = 3, length = 5;

numbers logits_of(std::int64_t classes) {
  numbers v;
  for (std::int64_t i = 0; i < batch * length * classes; ++i) v.push_back(static_cast<double>((i * 29) % 23) / 4 - 2);
  return v;
}
std::vector<std::int32_t> targets(std::int64_t classes, bool some_ignored) {
  std::vector<std::int32_t> v;
  for (std::int64_t i = 0; i < batch * length; ++i)
    v.push_back(some_ignored && i % 4 == 1 ? -100 : static_cast<std::int32_t>((i * 7 + 2) % classes));
  return v;
}

template <int T, class Counting>
struct parallel_loss {
  constexpr auto operator()(const auto& x, const auto& t) const {
    return sw::loss_parallel_cross_entropy<tp<T>, Counting>(x, t);
  }
};
template <int T, class Counting>
struct parallel_rows {
  constexpr auto operator()(const auto& x, const auto& t) const {
    return sw::loss_parallel_cross_entropy_rows<tp<T>, Counting>(x, t);
  }
};

// The loss, its rows and the gradient of the logits, by the formulas.
struct expected {
  double loss = 0;
  numbers rows, gradient;
};
expected whole_loss(std::int64_t classes, bool some_ignored) {
  const numbers x = logits_of(classes);
  const auto t = targets(classes, some_ignored);
  expected e;
  double kept = 0;
  for (auto id : t) kept += id >= 0 ? 1 : 0;
  for (std::size_t r = 0; r < t.size(); ++r) {
    const double* const row = x.data() + r * static_cast<std::size_t>(classes);
    double total = 0;
    for (std::int64_t k = 0; k < classes; ++k) total += std::exp(row[k]);
    e.rows.push_back(t[r] < 0 ? 0 : std::log(total) - row[t[r]]);
    e.loss += e.rows.back() / kept;
    for (std::int64_t k = 0; k < classes; ++k)
      e.gradient.push_back(t[r] < 0 ? 0 : (std::exp(row[k]) / total - (k == t[r] ? 1 : 0)) / kept);
  }
  return e;
}

void compare(const numbers& have, const numbers& want) {
  REQUIRE(have.size() == want.size());
  for (std::size_t i = 0; i < have.size(); ++i) CHECK(std::abs(have[i] - want[i]) <= 1e-12);
}

template <int D, int T, std::int64_t Classes, class Rows, class Counting>
void check() {
  constexpr bool ignores = Counting::ignores;
  const expected want = whole_loss(Classes, ignores);
  sw::launch<grid<D, T>>([&](auto& rank) {
    sw::eager on(rank);
    using mesh = grid<D, T>;
    const auto x =
        sw::dtensor_of<double, sw::shape<batch, length, Classes>, mesh, Rows, S<2>>::distribute(on, logits_of(Classes));
    const auto t =
        sw::dtensor_of<std::int32_t, sw::shape<batch, length>, mesh, Rows, R>::distribute(on, targets(Classes, ignores));
    const auto all = gradients_both_ways<parallel_loss<T, Counting>, 0>(rank, x, t);
    const auto& [loss, dx] = all;
    CHECK(std::abs(loss.item() - want.loss) <= 1e-12);
    static_assert(std::remove_cvref_t<decltype(dx)>::sp == sw::dual(decltype(x)::sp));
    compare(values_of(dx.full_tensor().to_local()), want.gradient);
    const auto [rows] = both_ways<parallel_rows<T, Counting>>(rank, x, t);
    compare(values_of(rows.full_tensor().to_local()), want.rows);
  });
}

using ignoring = sw::ignore_index<-100>;

// Collectives of the loss and of its gradient: two all-reduces of rows, and with ignored rows one of their number.
template <class Counting, int Want>
void check_traffic() {
  using mesh = grid<2, 2>;
  using x = sw::dtensor_of<double, sw::shape<batch, length, 7>, mesh, S<0>, S<2>>;
  using t = sw::dtensor_of<std::int32_t, sw::shape<batch, length>, mesh, S<0>, R>;
  constexpr auto forward = collectives_of<function_of<parallel_loss<2, Counting>, x, t>>();
  constexpr auto joint = collectives_of<gradient_of<parallel_loss<2, Counting>, sw::wrt<0>, x, t>>();
  static_assert(forward.count == Want && joint == forward);
  for (int k = 0; k < Want; ++k) CHECK(forward.kind[k] == sw::transition::all_reduce);
}

// A head whose weight is sharded by classes (colwise), its output kept, and the loss of it, beside the plain ones.
template <int T>
struct sharded_head {
  constexpr auto operator()(const auto& h, const auto& w, const auto& t) const {
    return sw::loss_parallel_cross_entropy<tp<T>>(sw::linear_product(h, w), t);
  }
};
struct plain_head {
  constexpr auto operator()(const auto& h, const auto& w, const auto& t) const {
    return sw::cross_entropy(sw::linear_product(h, w), t);
  }
};

template <class F, int D, int T, class Rows, class Hidden, class W, class WOnRows>
std::vector<numbers> head() {
  std::vector<numbers> result;
  sw::launch<grid<D, T>>([&](auto& rank) {
    sw::eager on(rank);
    using mesh = grid<D, T>;
    const auto h = sw::dtensor_of<double, sw::shape<batch, length, 6>, mesh, Rows, Hidden>::distribute(on, logits_of(6));
    numbers weights = logits_of(6);
    weights.resize(66);
    const auto w = sw::dtensor_of<double, sw::shape<11, 6>, mesh, WOnRows, W>::distribute(on, weights);
    const auto t = sw::dtensor_of<std::int32_t, sw::shape<batch, length>, mesh, Rows, R>::distribute(on, targets(11, false));
    const auto all = gradients_both_ways<F, 0, 1>(rank, h, w, t);
    const auto& [loss, dh, dw] = all;
    const std::vector<numbers> mine{
        {loss.item()}, values_of(dh.full_tensor().to_local()), values_of(dw.full_tensor().to_local())};
    if (rank.index() == 0) result = mine;
  });
  return result;
}

}  // namespace

TEST_CASE("loss parallel equals the whole loss: 1 to 4 ranks, uneven and empty class shards") {
  check<1, 1, 7, R, sw::count_all>();
  check<1, 2, 7, R, sw::count_all>();
  check<1, 3, 7, R, sw::count_all>();
  check<1, 4, 6, R, sw::count_all>();  // 2, 2, 2, none
  check<1, 4, 8, U, sw::count_all>();
}

TEST_CASE("loss parallel beside sharded rows, and with ignored rows") {
  check<2, 2, 7, S<0>, sw::count_all>();
  check<2, 2, 7, S<1>, ignoring>();
  check<1, 4, 5, R, ignoring>();
  check<1, 1, 5, U, ignoring>();
}

TEST_CASE("loss parallel: two all-reduces a step, none in the gradient") {
  check_traffic<sw::count_all, 2>();
  check_traffic<ignoring, 3>();
}

TEST_CASE("loss parallel: logits of zeros, four classes on two ranks") {
  sw::launch<grid<1, 2>>([](auto& rank) {
    sw::eager on(rank);
    const auto x = sw::dtensor_of<double, sw::shape<1, 4>, grid<1, 2>, R, S<1>>::zeros(on);
    const auto t = sw::dtensor_of<std::int32_t, sw::shape<1>, grid<1, 2>, R, R>::full(on, 3);
    const auto all = sw::value_and_grad<parallel_loss<2, sw::count_all>, 0>(x, t);
    CHECK(std::get<0>(all).item() == doctest::Approx(std::log(4.0)).epsilon(1e-15));
    const numbers own = values_of(std::get<1>(all).to_local());
    CHECK(own == (rank.index() == 0 ? numbers{0.25, 0.25} : numbers{0.25, -0.75}));
  });
}

TEST_CASE("a head whose output stays sharded, with the parallel loss, equals the plain head and loss") {
  const auto plain = head<plain_head, 1, 1, R, R, R, R>();
  const auto same = [&](const std::vector<numbers>& r) {
    REQUIRE(r.size() == 3);
    for (std::size_t k = 0; k < 3; ++k) compare(r[k], plain[k]);
  };
  same(head<sharded_head<1>, 1, 1, R, U, S<0>, R>());
  same(head<sharded_head<2>, 1, 2, R, U, S<0>, R>());
  same(head<sharded_head<3>, 1, 3, R, U, S<0>, R>());
  same(head<sharded_head<4>, 1, 4, R, U, S<0>, R>());
  same(head<sharded_head<2>, 2, 2, S<0>, U, S<0>, U>());
}

TEST_CASE("cross entropy with ignored rows on whole classes") {
  for (const bool some_ignored : {false, true}) {
    const expected want = whole_loss(7, some_ignored);
    sw::launch<grid<2, 1>>([&](auto& rank) {
      sw::eager on(rank);
      const auto x = sw::dtensor_of<double, sw::shape<batch, length, 7>, grid<2, 1>, S<0>, R>::distribute(on, logits_of(7));
      const auto t = sw::dtensor_of<std::int32_t, sw::shape<batch, length>, grid<2, 1>, S<0>, R>::distribute(
          on, targets(7, some_ignored));
      CHECK(std::abs(sw::cross_entropy<ignoring>(x, t).item() - want.loss) <= 1e-12);
      compare(values_of(sw::cross_entropy_rows<ignoring>(x, t).full_tensor().to_local()), want.rows);
    });
  }
}
