// SPDX-License-Identifier: Apache-2.0
// The law that a redistribution is a value: writes to it are not seen in its operand, nor the other way round; at once, as a
// program, with passes and with gradients.
#pragma once

#include <shardwise/pass/simplify/simplify.hpp>

#include <doctest/doctest.h>

#include <both_ways.hpp>

#include <memory>

namespace test::redistributed {

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
    return std::tuple{sw::scale(a, 1), sw::scale(to_a, 1),    to_b,           sw::contiguous(b), sw::scale(first, 1),
                      second,          sw::scale(arrived, 1), sw::scale(d, 1)};
  }
};
// What is as it was, together.
template <int N, class From, class To>
struct unwritten {
  constexpr auto operator()(const auto& x) const {
    const auto all = writes<N, To>{}(x);
    const auto back = [](const auto& y) { return sw::redistribute<line<N>, From>(y); };
    return sw::add(sw::add(std::get<0>(all), back(std::get<2>(all))),
                   sw::add(back(std::get<4>(all)), back(std::get<6>(all))));
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
  using merged = sw::function_step<f, mesh<N>, sw::inputs<sw::input_like<x_type>>,
                                   sw::pipeline<sw::cancel_redistributions, sw::merge_common>>;
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

}  // namespace test::redistributed
