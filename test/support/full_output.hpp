// SPDX-License-Identifier: Apache-2.0
// A program whose outputs are uneven, empty and strided blocks, of floating-point numbers and of integers, and what the whole of each is.
#pragma once

#include <doctest/doctest.h>

#include <type_traits>
#include <vector>

#include <place.hpp>

#include <shardwise/module/function.hpp>

namespace full_output {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};
template <int D, int N>
using mesh = sw::mesh<dp<D>, tp<N>>;

template <int D, int N>
struct all_kinds {  // x (rows, 5): rows over D ranks, columns over N
  constexpr auto operator()(const auto& x, const auto& y) const {
    return sw::outputs(
        sw::named<"twice">(x * 2.), sw::named<"turned">(sw::contiguous(sw::transpose<0, 1>(x))),
        sw::named<"positive">(sw::gt(x, 0.)), sw::named<"whole">(y + y), sw::named<"partial">(sw::sum(x)),
        sw::named<"sum">(sw::redistribute<sw::on<dp<D>, sw::replicate>, sw::on<tp<N>, sw::replicate>>(sw::sum(x))),
        sw::named<"across">(sw::transpose<0, 1>(x)), sw::named<"repeated">(sw::expand<4, 3>(y)),
        sw::named<"column">(
            sw::select<1, 2>(sw::redistribute<sw::on<dp<D>, sw::replicate>, sw::on<tp<N>, sw::replicate>>(x))));
  }
};
template <class Place, class Rows, int D, int N>
using program =
    sw::function_step<all_kinds<D, N>, mesh<D, N>,
                      sw::inputs<sw::input_tensor<double, Rows, sw::on<dp<D>, sw::shard<0>>, sw::on<tp<N>, sw::shard<1>>>,
                                 sw::input_tensor<double, sw::shape<3>>>,
                      sw::pipeline<>, typename Place::backend>;

inline double number(int i, int j) { return (i * 5 + j) * 7 % 11 - 5; }

template <class Rank, class Executor>
void check(Rank& rank, Executor& run, int rows) {
  std::vector<double> x;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 5; ++j) x.push_back(number(i, j));
  run.set_input(0, x);
  run.set_input(1, std::vector<double>{1, 2, 3});
  run.run({});
  const std::vector<double> twice = run.template full_output<"twice">(), turned = run.template full_output<"turned">(),
                            sum = run.full_output(5);
  const auto positive = run.template full_output<"positive">();
  REQUIRE(twice.size() == x.size());
  REQUIRE(turned.size() == x.size());
  REQUIRE(positive.size() == x.size());
  double total = 0;
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 5; ++j) {
      const auto at = static_cast<std::size_t>(i * 5 + j);
      CHECK(twice[at] == 2 * number(i, j));
      CHECK(turned[static_cast<std::size_t>(j * rows + i)] == number(i, j));
      CHECK(positive[at] == (number(i, j) > 0 ? 1 : 0));
      total += number(i, j);
    }
  CHECK(sum == std::vector<double>{total});
  CHECK(run.full_output(3) == std::vector<double>{2, 4, 6});
  const std::vector<double> across = run.template full_output<"across">();
  REQUIRE(across.size() == x.size());
  for (int i = 0; i < rows; ++i)
    for (int j = 0; j < 5; ++j) CHECK(across[static_cast<std::size_t>(j * rows + i)] == number(i, j));
  const std::vector<double> column = run.template full_output<"column">();
  REQUIRE(column.size() == static_cast<std::size_t>(rows));
  for (int i = 0; i < rows; ++i) CHECK(column[static_cast<std::size_t>(i)] == number(i, 2));
  CHECK(run.template full_output<"repeated">() == std::vector<double>{1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3});
  const int last = Executor::mesh_type::size - 1;
  CHECK(run.full_output(0, last).size() == (rank.index() == last ? x.size() : 0));
}

template <class Place, int D, int N>
void on_mesh() {
  Place::template launch<mesh<D, N>>([](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<program<Place, sw::shape<7, 5>, D, N>, rank_type> run(rank);
    check(rank, run, 7);
    sw::executor<program<Place, sw::shape<sw::dyn<9>, 5>, D, N>, rank_type> any(rank);
    for (const int rows : {9, 4, 1, 0, 6}) {
      any.resize(rows);
      check(rank, any, rows);
    }
  });
}

}  // namespace full_output
