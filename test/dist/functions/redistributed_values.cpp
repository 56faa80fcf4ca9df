// SPDX-License-Identifier: Apache-2.0
// A redistribution is a value: writes in place to it are not seen in its operand, nor the other way round, whatever it
// moves; and a pending one is what its source was when it was issued. At once, as a program, with gradients, on 1 to 4
// ranks and on a rank alone.
#include <shardwise/pass/simplify.hpp>

#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <memory>

namespace {

using namespace test;

template <int N>
struct line : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<line<N>>;
using R = sw::replicate;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;
using numbers = std::vector<double>;

template <int N, class Placement, std::int64_t... E>
using tensor = sw::dtensor_of<double, sw::shape<E...>, mesh<N>, sw::on<line<N>, Placement>>;

numbers counted(std::size_t n) {
  numbers v(n);
  for (std::size_t i = 0; i < n; ++i) v[i] = static_cast<double>(i) + 1;
  return v;
}
numbers times(numbers v, double by) {
  for (double& e : v) e *= by;
  return v;
}

// Each two of the results: what must be as it was, and what was written.
template <int N, class To>
struct writes {
  constexpr auto operator()(const auto& x) const {
    using axis = line<N>;
    const auto a = sw::scale(x, 1), b = sw::scale(x, 1), c = sw::scale(x, 1), d = sw::scale(x, 1);
    const auto to_a = sw::redistribute<axis, To>(a);
    sw::mul_(to_a, 2);
    const auto to_b = sw::redistribute<axis, To>(b);
    sw::mul_(sw::transpose<0, 1>(b), 2);
    const auto first = sw::redistribute<axis, To>(c), second = sw::redistribute<axis, To>(c);
    sw::mul_(sw::narrow<2, 0, 3>(sw::unsqueeze<0>(second)), 2);
    auto pending = sw::redistribute_async<axis, To>(d);
    sw::mul_(sw::transpose<0, 1>(d), 2);
    const auto arrived = std::move(pending).wait();
    return std::tuple{sw::scale(a, 1), sw::scale(to_a, 1), to_b,    sw::contiguous(b),
                      sw::scale(first, 1), second, sw::scale(arrived, 1), sw::scale(d, 1)};
  }
};
// What is as it was, together.
template <int N, class From, class To>
struct unwritten {
  constexpr auto operator()(const auto& x) const {
    const auto all = writes<N, To>{}(x);
    const auto back = [](const auto& y) { return sw::redistribute<line<N>, From>(y); };
    return sw::add(sw::add(std::get<0>(all), back(std::get<2>(all))), sw::add(back(std::get<4>(all)), back(std::get<6>(all))));
  }
};
// The same of x itself, which the caller finds written then.
template <int N, class To>
struct writes_input {
  constexpr auto operator()(const auto& x) const {
    const auto y = sw::redistribute<line<N>, To>(x);
    auto pending = sw::redistribute_async<line<N>, To>(x);
    sw::mul_(x, 2);
    return std::tuple{y, std::move(pending).wait()};
  }
};

// Every result is `factors[k]` times the first one of the input; as a program and run by it.
template <class Step, class Rank, class X, class Results>
void check_results(Rank& rank, const X& x, const Results& at_once, const numbers& whole, const double (&factors)[8]) {
  const auto check = [&](const auto& results) {
    std::size_t k = 0;
    const auto one = [&](const auto& r) { CHECK(values_of(r.full_tensor().to_local()) == times(whole, factors[k++])); };
    std::apply([&](const auto&... r) { (one(r), ...); }, results);
  };
  check(at_once);
  check(X::template run<Step>(x));
  const auto e = std::make_unique<sw::executor<Step, Rank>>(rank, sw::executor_checks::poison);
  const auto block = X(x).to_local();
  for (int round = 0; round < 2; ++round) {
    std::memcpy(e->template input<double>(0).data(), block.data.data(), block.data.size_bytes());
    e->run({});
    int at = 0;
    const auto one = [&](const auto& r) { CHECK(values_of(e->template output<double>(at++)) == values_of(r.to_local())); };
    std::apply([&](const auto&... r) { (one(r), ...); }, at_once);
  }
}
template <int N, class From, class To>
void check_on(auto& rank) {
  using rank_type = std::remove_reference_t<decltype(rank)>;
  sw::eager<rank_type> on(rank);
  using x_type = typename tensor<N, From, 5, 3>::template on_rank<rank_type>;
  const numbers whole = counted(15);
  const auto fresh = [&] { return tensor<N, From, 5, 3>::distribute(on, whole); };
  const auto x = fresh();
  using f = writes<N, To>;
  check_results<function_of<f, x_type>>(rank, x, f{}(x), whole, {1, 2, 1, 2, 1, 2, 1, 2});
  using merged = sw::function_step<f, mesh<N>, sw::inputs<sw::input_like<x_type>>, sw::pipeline<sw::cancel_redistributions, sw::merge_common>>;
  check_results<merged>(rank, x, f{}(x), whole, {1, 2, 1, 2, 1, 2, 1, 2});
  CHECK(values_of(x.full_tensor().to_local()) == whole);

  using g = writes_input<N, To>;
  const auto once = fresh();
  const auto results = g{}(once);
  CHECK(values_of(std::get<0>(results).full_tensor().to_local()) == whole);
  CHECK(values_of(std::get<1>(results).full_tensor().to_local()) == whole);
  CHECK(values_of(once.full_tensor().to_local()) == times(whole, 2));
  const auto given = fresh();
  const auto again = x_type::template run<function_of<g, x_type>>(given);
  CHECK(values_of(std::get<0>(again).full_tensor().to_local()) == whole);
  CHECK(values_of(std::get<1>(again).full_tensor().to_local()) == whole);
  CHECK(values_of(given.full_tensor().to_local()) == times(whole, 2));
  sw::executor<function_of<g, x_type>, rank_type> e(rank, sw::executor_checks::poison);
  const auto start = fresh();
  const auto block = start.to_local();
  std::memcpy(e.template input<double>(0).data(), block.data.data(), block.data.size_bytes());
  e.run({});
  CHECK(values_of(e.template output<double>(0)) == values_of(std::get<0>(results).to_local()));
  CHECK(values_of(e.template output<double>(1)) == values_of(std::get<1>(results).to_local()));
  CHECK(numbers(e.template input<double>(0).begin(), e.template input<double>(0).end()) == values_of(once.to_local()));

  const auto [sum, gradient] = sw::value_and_grad<unwritten<N, From, To>, 0>(x);
  CHECK(values_of(sum.full_tensor().to_local()) == times(whole, 4));
  CHECK(values_of(gradient.full_tensor().to_local()) == numbers(15, 4.0));
}
template <int N, class From, class To>
void check() {
  sw::launch<mesh<N>>([](auto& rank) { check_on<N, From, To>(rank); });
}

TEST_CASE("values: a redistribution and its operand are two tensors, whatever is moved") {
  check<1, R, R>();
  check<2, R, R>();
  check<1, R, S<0>>();
  check<2, R, S<0>>();
}
TEST_CASE("values: under another name, of sums, and of shards") {
  check<2, R, sw::reduced>();
  check<1, P, R>();
  check<2, P, R>();
  check<3, S<0>, R>();
  check<4, S<1>, S<0>>();
}
TEST_CASE("values: on a rank alone") {
  sw::launch_fake<mesh<2>>(1, [](auto& rank) {
    sw::eager<std::remove_reference_t<decltype(rank)>> on(rank);
    const auto x = tensor<2, R, 5, 3>::distribute(on, counted(15));
    const auto results = writes<2, R>{}(x);
    CHECK(values_of(std::get<0>(results).to_local()) == counted(15));
    CHECK(values_of(std::get<1>(results).to_local()) == times(counted(15), 2));
    CHECK(values_of(std::get<6>(results).to_local()) == counted(15));
  });
}

// --- a module whose style hands it a tensor of its own ---------------------------------------------------------------

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

template <bool InPlace>
struct family {
  template <class Bound = sw::unbound>
  struct bent : sw::module<bent<Bound>, Bound> {
    BOOST_HANA_DEFINE_STRUCT(bent, (sw::linear<4, 4, sw::child<Bound, 0>>, inner));
    constexpr auto forward(const auto& x) const {
      if constexpr (InPlace) {
        sw::relu_(x);
        return inner(x);
      } else {
        return inner(sw::relu(x));
      }
    }
  };
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    BOOST_HANA_DEFINE_STRUCT(model, (bent<sw::child<Bound, 0>>, block));
    constexpr auto forward(const auto& x) const {
      const auto h = x * 1.0;
      return block(h) + h;
    }
  };
};
template <class D>
struct square_task {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<6, 4>, sw::on<D, S<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
    return sw::mean(y * y);
  }
};
template <int D, int T, bool InPlace>
numbers losses() {
  using grid = sw::mesh<dp<D>, tp<T>>;
  using plan = sw::plan<sw::data_parallel<dp<D>>, sw::at<"block", sw::prepare_input<tp<T>, S<1>>>,
                        sw::at<"block.inner", sw::rowwise<tp<T>>>>;
  using step = sw::train_step<family<InPlace>::template model, square_task<dp<D>>, plan, grid, sw::sgd<>, sw::pipeline<>, double>;
  numbers all;
  sw::launch<grid>([&](auto& rank) {
    sw::executor<step> e(rank, sw::executor_checks::poison);
    e.initialise(3);
    numbers x(24);
    for (std::size_t i = 0; i < 24; ++i) x[i] = static_cast<double>(i * 7 % 11) / 4 - 1;
    for (int at = 1; at <= 4; ++at) {
      sw::step_env env;
      env.step = at;
      env.lr = 0.1;
      e.set_input(0, x);
      e.run(env);
      // the mean is still to be taken along dp
      if (rank.index() == 0) all.push_back(0);
      rank.barrier();
      for (int r = 0; r < D * T; ++r) {
        if (rank.index() == r && rank.coordinate(1) == 0) all.back() += e.loss() / D;
        rank.barrier();
      }
    }
  });
  return all;
}
TEST_CASE("values: a module that writes what its style hands it trains alike on every mesh") {
  const numbers want = losses<1, 1, false>();
  const auto check = [&](const numbers& have) {
    REQUIRE(have.size() == want.size());
    for (std::size_t i = 0; i < want.size(); ++i) CHECK(have[i] == doctest::Approx(want[i]).epsilon(1e-12));
  };
  CHECK(want[3] < want[0]);
  check(losses<1, 1, true>());
  check(losses<2, 1, true>());
  check(losses<2, 2, true>());
}

}  // namespace
