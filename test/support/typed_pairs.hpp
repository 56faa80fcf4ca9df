// SPDX-License-Identifier: Apache-2.0
// Tensors of known values under lists of placements, and pairs of lists drawn from all that have a plan: what tests of
// typed redistribution are written with.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <both_ways.hpp>
#include <cstdint>
#include <mutex>
#include <utility>

namespace test {

template <class... P>
struct list {};
template <class Mesh, class P>
struct named;
template <class... Axis, class... P>
struct named<sw::mesh<Axis...>, list<P...>> {
  template <class Shape>
  using tensor = sw::dtensor_of<double, Shape, sw::mesh<Axis...>, P...>;
  template <sw::redistribution_policy Policy>
  static constexpr auto move(const auto& x) {
    return sw::redistribute<Policy, sw::on<Axis, P>...>(x);
  }
};

constexpr double value_at(std::int64_t i) { return static_cast<double>((i * 37 + 11) % 101) - 40; }

// A rank's block of the tensor whose element i is value_at(i), with shares that differ where it is partial; all whole
// numbers, so that sums are exact in any order.
template <class X, class Rank>
X made(const sw::eager<Rank>& on, Rank& rank) {
  using sw::reduction;
  const auto c = rank.coordinate();
  const sw::runtime::layout l = sw::runtime::local_layout(X::sp, c.data());
  std::vector<double> block(static_cast<std::size_t>(l.numel()));
  sw::runtime::each_element(l, [&](std::int64_t i, std::int64_t g) {
    double v = value_at(g);
    for (int a = 0; a < X::sp.axes; ++a) {
      const sw::placement p = X::sp.place[a];
      const int n = X::sp.axis_size[a], k = c[static_cast<std::size_t>(a)];
      if (!p.is_partial()) continue;
      if (p.op == reduction::sum)
        v = k > 0 ? 3.0 * k + static_cast<double>(g % 5)
                  : v - 3.0 * n * (n - 1) / 2 - static_cast<double>((n - 1) * (g % 5));
      if (p.op == reduction::avg) v += 2 * k - (n - 1);
      if (p.op == reduction::max) v -= g % n == k ? 0 : 1 + k;
      if (p.op == reduction::min) v += g % n == k ? 0 : 1 + k;
    }
    block[static_cast<std::size_t>(i)] = v;
  });
  return X::from_local(on, block);
}

template <class X>
bool is_the_tensor(const X& x, double factor = 1) {
  const auto whole = x.full_tensor();
  bool same = true;
  std::int64_t i = 0;
  for (const double v : whole.to_local().data) same = same && v == factor * value_at(i++);
  return same && i == sw::numel(X::sp);
}

// --- a pair named by hand ------------------------------------------------------------------------------------------

template <class Mesh, class To, sw::redistribution_policy Policy>
struct moves {
  constexpr auto operator()(const auto& x) const { return named<Mesh, To>::template move<Policy>(x); }
};
template <class Mesh, class To, sw::redistribution_policy Policy>
struct weighs {
  constexpr auto operator()(const auto& x, const auto& w) const { return named<Mesh, To>::template move<Policy>(x) * w; }
};

// A factor of the tensor beside which a placement may stand.
template <class P>
struct beside {
  using type = P;
};
template <sw::reduction Op>
struct beside<sw::partial<Op>> {
  using type = sw::reduced;
};
// What the cotangent of a rank's block is of the whole's: one part in as many as there are ranks, where x is a mean.
template <class X>
constexpr double block_share() {
  double share = 1;
  for (int a = 0; a < X::sp.axes; ++a)
    if (X::sp.place[a] == sw::partial_value(sw::reduction::avg)) share /= X::sp.axis_size[a];
  return share;
}

inline int pairs = 0;

template <class Mesh, class Shape, class From, class To, sw::redistribution_policy Policy = sw::redistribution_policy::late>
void keeps() {
  using X = typename named<Mesh, From>::template tensor<Shape>;
  using Y = typename named<Mesh, To>::template tensor<Shape>;
  using constants = sw::redistribution<X, Y, Policy>;
  ++pairs;
  std::mutex gate;
  std::int64_t most = 0;
  sw::launch<Mesh>([&](auto& rank) {
    sw::eager on(rank);
    const X x = made<X>(on, rank);
    CHECK(is_the_tensor(x));
    rank.reset_counts();
    const auto y = moves<Mesh, To, Policy>{}(x);
    std::int64_t sent = 0;
    for (int a = 0; a < Mesh::axes; ++a) {
      CHECK(rank.bytes_written(a) == constants::bytes_of(rank.index(), a));
      sent += rank.bytes_written(a);
    }
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>, Y>);
    CHECK(is_the_tensor(y));
    both_ways<moves<Mesh, To, Policy>>(rank, x);
    {
      const std::lock_guard lock(gate);
      most = std::max(most, sent);
    }
  });
  CHECK(most == constants::bytes);
}

template <class To>
struct weight_of;
template <class... P>
struct weight_of<list<P...>> {
  using type = list<typename beside<P>::type...>;
};

// d sum(x * w) / dx is w, wherever x goes before it is weighed; of a rank's block of a mean, its share of w.
template <class Mesh, class Shape, class From, class To, sw::redistribution_policy Policy = sw::redistribution_policy::late>
void has_gradient() {
  using X = typename named<Mesh, From>::template tensor<Shape>;
  using W = typename named<Mesh, typename weight_of<To>::type>::template tensor<Shape>;
  keeps<Mesh, Shape, From, To, Policy>();
  sw::launch<Mesh>([&](auto& rank) {
    sw::eager on(rank);
    const X x = made<X>(on, rank);
    const W w = made<W>(on, rank);
    const auto results = gradients_both_ways<weighs<Mesh, To, Policy>, 0>(rank, x, w);
    const auto& dx = std::get<1>(results);
    static_assert(std::remove_cvref_t<decltype(dx)>::sp == sw::contiguous(sw::dual(X::sp)));
    CHECK(is_the_tensor(dx, block_share<X>()));
  });
}

// --- a sample of all pairs -------------------------------------------------------------------------------------------

struct drawn_pair {
  sw::spec from, to;
};

constexpr std::uint64_t stirred(std::uint64_t x) {
  x = (x ^ (x >> 31)) * 0x9E3779B97F4A7C15ULL;
  x = (x ^ (x >> 29)) * 0xBF58476D1CE4E5B9ULL;
  return x ^ (x >> 32);
}

// Placements at random for the tensor `s`: a shard comes after a random part of the later axes that split its dim.
constexpr sw::spec drawn_list(sw::spec s, std::uint64_t seed) {
  using sw::reduction;
  constexpr reduction ops[] = {reduction::sum, reduction::sum, reduction::avg, reduction::max};
  for (int a = s.axes - 1; a >= 0; --a) {
    const std::uint64_t draw = stirred(seed * 16 + static_cast<std::uint64_t>(a));
    const int kind = static_cast<int>(draw % 8), d = static_cast<int>(draw / 8 % s.rank);
    if (kind == 0) s.place[a] = sw::replicate_value();
    else if (kind == 1) s.place[a] = sw::reduced_value();
    else if (kind == 2) s.place[a] = sw::partial_value(ops[draw / 64 % 4]);
    else s.place[a] = sw::strided_shard_value(d, kind < 5 ? 1 : sw::last_factor(s, a, d));
  }
  return s;
}

// The first pair from `seed` on that differs and has a plan.
constexpr drawn_pair drawn(const sw::spec& tensor, std::uint64_t seed) {
  for (std::uint64_t k = seed * 1000;; ++k) {
    drawn_pair p{drawn_list(tensor, 2 * k), drawn_list(tensor, 2 * k + 1)};
    if (sw::check_placements(p.from) || sw::check_placements(p.to)) continue;
    sw::normalise(p.from);
    sw::normalise(p.to);
    if (p.from != p.to && sw::plan_redistribution(p.from, p.to)) return p;
  }
}

template <sw::spec S>
struct listed {
  template <std::size_t... A>
  static auto types(std::index_sequence<A...>) -> list<typename sw::detail::placement_type<S.place[A]>::type...>;
  static constexpr std::size_t axes = S.axes;
  using type = decltype(types(std::make_index_sequence<axes>{}));
};

constexpr bool any_partial(const sw::spec& s) {
  bool any = false;
  for (int a = 0; a < s.axes; ++a) any = any || s.place[a].is_partial();
  return any;
}

// There, in the bytes that its constants say; and back, where a plan leads back: to the same blocks but for shares.
template <class Mesh, class Shape, std::uint64_t Seed>
void drawn_pair_keeps() {
  static constexpr drawn_pair pair = drawn(sw::spec_of<double, Shape, Mesh>::value, Seed);
  using from = named<Mesh, typename listed<pair.from>::type>;
  using to = named<Mesh, typename listed<pair.to>::type>;
  using X = typename from::template tensor<Shape>;
  using Y = typename to::template tensor<Shape>;
  static_assert(X::sp == pair.from && Y::sp == pair.to);
  constexpr auto late = sw::redistribution_policy::late;
  using constants = sw::redistribution<X, Y>;
  sw::launch<Mesh>([](auto& rank) {
    sw::eager on(rank);
    const X x = made<X>(on, rank);
    CHECK(is_the_tensor(x));
    rank.reset_counts();
    const auto y = to::template move<late>(x);
    static_assert(std::is_same_v<std::remove_cvref_t<decltype(y)>, Y>);
    for (int a = 0; a < Mesh::axes; ++a) CHECK(rank.bytes_written(a) == constants::bytes_of(rank.index(), a));
    CHECK(is_the_tensor(y));
    if constexpr (static_cast<bool>(sw::plan_redistribution(Y::sp, X::sp))) {
      const auto back = from::template move<late>(y);
      if constexpr (any_partial(X::sp) || any_partial(Y::sp)) CHECK(is_the_tensor(back));
      else CHECK(same_bits(back.to_local(), x.to_local()));
    }
  });
}

template <class Mesh, class Shape, std::uint64_t First, std::uint64_t... I>
void drawn_pairs_keep(std::integer_sequence<std::uint64_t, I...>) {
  (drawn_pair_keeps<Mesh, Shape, First + I>(), ...);
}
template <class Mesh, class Shape, std::uint64_t First, std::uint64_t Count>
void drawn_pairs_keep() {
  drawn_pairs_keep<Mesh, Shape, First>(std::make_integer_sequence<std::uint64_t, Count>{});
}

}  // namespace test
