// SPDX-License-Identifier: Apache-2.0
// A function of tensors against a reference file: results and gradients, at once and as a program, however placed.
#pragma once

#include <algorithm>
#include <both_ways.hpp>
#include <cmath>
#include <golden.hpp>
#include <mutex>

// What the references of functions call their axes and placements.
namespace test::golden_names {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
using R = sw::replicate;
using U = sw::reduced;
using P = sw::partial<>;
template <int D>
using S = sw::shard<D>;

}  // namespace test::golden_names

namespace test {

// Placements of one operand, one for each mesh axis.
template <class... Placement>
struct placed {};

template <class Shape, class Mesh, class Placed>
struct operand_type;
template <class Shape, class Mesh, class... Placement>
struct operand_type<Shape, Mesh, placed<Placement...>> {
  using type = sw::dtensor_of<double, Shape, Mesh, Placement...>;
};

// Steps of a function that say where a value is to be: nowhere else, or redistributed.
struct stay {
  constexpr auto operator()(const auto& x) const { return x; }
};
template <class Axis, class To>
struct move {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<Axis, To>(x); }
};
template <class... Step>
struct in_turn {
  constexpr auto operator()(const auto& x) const { return x; }
};
template <class First, class... More>
struct in_turn<First, More...> {
  constexpr auto operator()(const auto& x) const { return in_turn<More...>{}(First{}(x)); }
};

// Largest |value - wanted| over the largest |wanted|; not a number where sizes differ or a value is none.
inline double relative_error(const std::vector<double>& value, const std::vector<double>& wanted) {
  if (value.size() != wanted.size()) return std::nan("");
  double largest = 0, worst = 0;
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted[i]));
    const double d = std::abs(value[i] - wanted[i]);
    worst = std::isnan(d) || std::isnan(worst) ? std::nan("") : std::max(worst, d);
  }
  return largest > 0 ? worst / largest : worst;
}

inline constexpr double golden_tolerance = 1e-12;

// Case::shapes are the operands' shapes, Case::names() their names in the file, Case::wanted({Wrt...}) the names of the
// results and then of the gradients of operands Wrt; a result named "" has none. F returns the loss first. Every rank's
// whole results, of eager tensors and of the program on the same blocks (equal to the bit), are within the tolerance.
template <class Case, class F, class Mesh, class Wrt, class... Placed>
struct golden_function;
template <class Case, class F, class Mesh, int... Wrt, class... Placed>
struct golden_function<Case, F, Mesh, sw::wrt<Wrt...>, Placed...> {
  static void check() { run(typename Case::shapes{}); }

 private:
  template <class... Shape>
  static void run(std::tuple<Shape...>) {
    const safetensors file(data_file(Case::file));
    const auto names = Case::names();
    const std::vector<std::string> wanted = Case::wanted({Wrt...});
    std::vector<std::vector<double>> values;
    for (const auto& name : names) values.push_back(Case::value(file, name));
    std::mutex gate;
    std::vector<double> worst(wanted.size());
    int compared = 0;
    sw::launch<Mesh>([&](auto& rank) {
      sw::eager on(rank);
      [&]<std::size_t... I>(std::index_sequence<I...>) {
        const auto all =
            gradients_both_ways<F, Wrt...>(rank, operand_type<Shape, Mesh, Placed>::type::distribute(on, values[I])...);
        std::apply(
            [&](const auto&... r) {
              const std::vector<std::vector<double>> mine{values_of(sw::contiguous(r).full_tensor().to_local())...};
              const std::lock_guard lock(gate);
              REQUIRE(mine.size() == wanted.size());
              for (std::size_t k = 0; k < wanted.size(); ++k) {
                if (wanted[k].empty()) continue;
                const double e = relative_error(mine[k], Case::value(file, wanted[k]));
                worst[k] = e <= worst[k] ? worst[k] : e;  // NaN stays
                ++compared;
              }
            },
            all);
      }(std::index_sequence_for<Shape...>{});
    });
    const auto named = wanted.size() - static_cast<std::size_t>(std::count(wanted.begin(), wanted.end(), ""));
    CHECK(compared == Mesh::size * static_cast<int>(named));
    for (std::size_t k = 0; k < wanted.size(); ++k) {
      CAPTURE(wanted[k]);
      CHECK(worst[k] <= golden_tolerance);
    }
  }
};

}  // namespace test
