// SPDX-License-Identifier: Apache-2.0
// full_output: the whole of what a program gives, gathered from uneven, empty and strided blocks, at the size of the run.
#include <shardwise/shardwise.hpp>

#include <doctest/doctest.h>

#include <thrown.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace {

namespace sw = shardwise;
using test::mentions, test::thrown;

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
        sw::named<"sum">(sw::redistribute<sw::on<dp<D>, sw::replicate>, sw::on<tp<N>, sw::replicate>>(sw::sum(x))));
  }
};
template <class Rows, int D, int N>
using program =
    sw::function_step<all_kinds<D, N>, mesh<D, N>,
                      sw::inputs<sw::input_tensor<double, Rows, sw::on<dp<D>, sw::shard<0>>, sw::on<tp<N>, sw::shard<1>>>,
                                 sw::input_tensor<double, sw::shape<3>>>,
                      sw::pipeline<>>;

double number(int i, int j) { return (i * 5 + j) * 7 % 11 - 5; }

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
  const std::vector<std::int32_t> positive = run.template full_output<"positive">();
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
  const int last = Executor::mesh_type::size - 1;
  CHECK(run.full_output(0, last).size() == (rank.index() == last ? x.size() : 0));
}

template <int D, int N>
void on_mesh() {
  sw::launch<mesh<D, N>>([](auto& rank) {
    sw::executor<program<sw::shape<7, 5>, D, N>> run(rank);
    check(rank, run, 7);
    sw::executor<program<sw::shape<sw::dyn<9>, 5>, D, N>> any(rank);
    for (const int rows : {9, 4, 1, 0, 6}) {
      any.resize(rows);
      check(rank, any, rows);
    }
  });
}

TEST_CASE("a whole output is what one rank has, of any mesh, at any size of a run") {
  on_mesh<1, 1>();
  on_mesh<2, 1>();
  on_mesh<3, 1>();
  on_mesh<2, 2>();
  on_mesh<1, 4>();
}

TEST_CASE("a whole output that is none says so") {
  sw::launch<mesh<2, 1>>([](auto& rank) {
    sw::executor<program<sw::shape<7, 5>, 2, 1>> run(rank);
    CHECK(mentions(thrown([&] { run.full_output(); }), "has not run yet"));
    run.set_input(0, std::vector<double>(35));
    run.set_input(1, std::vector<double>(3));
    run.run({});
    CHECK(mentions(thrown([&] { run.full_output(6); }), "output"));
    CHECK(mentions(thrown([&] { run.full_output(4); }), "full_output: output 4 is partial on mesh axis 0"));
    CHECK(mentions(thrown([&] { run.full_output(0, 2); }), "full_output: rank 2 is asked for; the mesh has ranks 0..1"));
    CHECK(mentions(thrown([&] { run.full_output(2); }), "full_output: elements of type"));
  });
}

}  // namespace
