// SPDX-License-Identifier: Apache-2.0
// Communication volumes as constants equal the bytes counted where they are copied; redistribution loses nothing.
#include <doctest/doctest.h>

#include <gpt.hpp>
#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

template <class Bound = sw::unbound>
struct nothing : sw::module<nothing<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(nothing);
  constexpr auto forward(const auto& x) const { return x; }
};
template <class B>
using no_model = nothing<B>;

constexpr double value_at(std::int64_t i) { return static_cast<double>((i * 37 + 11) % 101) - 40; }

// Fills a rank's block of the tensor whose element i is value_at(i); partial blocks add up to it over the axes.
void fill(std::span<double> block, const sw::spec& s, const sw::runtime::layout& l, const std::array<int, sw::max_axes>& c) {
  std::int64_t at[sw::max_rank]{};
  for (double& x : block) {
    const std::int64_t i = sw::host::detail::global_index(l, at);
    double v = value_at(i);
    for (int a = 0; a < s.axes; ++a)  // others hold 3 k, coordinate 0 what is left
      if (s.place[a].is_partial()) {
        const int n = s.axis_size[a], k = c[static_cast<std::size_t>(a)];
        v = k > 0 ? 3.0 * k + static_cast<double>(i % 5) : v - 3.0 * n * (n - 1) / 2 - static_cast<double>((n - 1) * (i % 5));
      }
    x = v;
    for (int d = l.rank - 1; d >= 0 && ++at[d] == l.ext[d]; --d) at[d] = 0;
  }
}

// Bytes that each rank is predicted to send on Axis.
template <class Program, class Axis>
constexpr auto predicted() {
  return []<std::size_t... R>(std::index_sequence<R...>) {
    return std::array<std::int64_t, sizeof...(R)>{Program::template comm_bytes<Axis, static_cast<int>(R)>...};
  }(std::make_index_sequence<Program::mesh_type::size>{});
}

struct outcome {
  bool values = true, bytes = true, busiest = true;
  std::int64_t written = 0;
};

// Runs From -> task's result and checks result blocks and counted bytes on every rank.
template <class Mesh, class Task, class... Axes>
outcome run_case() {
  using program = sw::forward_step<no_model, Task, sw::plan<>, Mesh, sw::pipeline<>, double>;
  outcome all;
  std::mutex gate;
  std::int64_t most[sizeof...(Axes)]{};
  sw::launch<Mesh>([&](auto& rank) {
    sw::executor<program, std::remove_reference_t<decltype(rank)>> ex(rank);
    int id = 0;
    while (program::program.nodes[id].op != sw::op_code::input) ++id;
    fill(ex.template input<double>(0), program::program.spec_of(id), ex.layout_of(id), rank.coordinate());
    ex.run({});
    outcome one;
    const auto& l = ex.output_layout();
    std::int64_t at[sw::max_rank]{};
    for (const double x : ex.output()) {
      one.values = one.values && x == value_at(sw::host::detail::global_index(l, at));
      for (int d = l.rank - 1; d >= 0 && ++at[d] == l.ext[d]; --d) at[d] = 0;
    }
    const std::int64_t want[] = {predicted<program, Axes>()[static_cast<std::size_t>(rank.index())]...};
    for (std::size_t a = 0; a < sizeof...(Axes); ++a)
      one.bytes = one.bytes && rank.bytes_written(static_cast<int>(a)) == want[a];
    const std::lock_guard lock(gate);
    all.values = all.values && one.values;
    all.bytes = all.bytes && one.bytes;
    for (std::size_t a = 0; a < sizeof...(Axes); ++a) {
      most[a] = std::max(most[a], rank.bytes_written(static_cast<int>(a)));
      all.written += rank.bytes_written(static_cast<int>(a));
    }
  });
  const std::int64_t busiest[] = {program::template comm_bytes<Axes>...};
  for (std::size_t a = 0; a < sizeof...(Axes); ++a) all.busiest = all.busiest && most[a] == busiest[a];
  return all;
}

// --- one axis: every pair of placements -----------------------------------------------------------------------------

template <int N>
struct ring : sw::axis<N> {};

template <class Axis, class Shape, class From, class To>
struct one_way {
  using inputs = sw::inputs<sw::input_tensor<double, Shape, sw::on<Axis, From>>>;
  constexpr auto operator()(const auto&, const auto& x) const { return sw::redistribute<Axis, To>(x); }
};
template <class Axis, class Shape, class From, class To>
struct there_and_back {
  using inputs = sw::inputs<sw::input_tensor<double, Shape, sw::on<Axis, From>>>;
  constexpr auto operator()(const auto&, const auto& x) const { return sw::redistribute<Axis, From>(sw::redistribute<Axis, To>(x)); }
};

template <class... P>
struct placements {};

template <class Axis, class Shape, class From, class To>
void check_pair(int& communicating) {
  using mesh = sw::mesh<Axis>;
  const outcome there = run_case<mesh, one_way<Axis, Shape, From, To>, Axis>();
  const outcome back = run_case<mesh, there_and_back<Axis, Shape, From, To>, Axis>();
  CHECK(there.values);
  CHECK(there.bytes);
  CHECK(there.busiest);
  CHECK(back.values);
  CHECK(back.bytes);
  CHECK(back.busiest);
  communicating += there.written > 0 ? 1 : 0;
}

template <class Axis, class Shape, class... P>
void check_pairs(placements<P...>, int expected) {
  int communicating = 0;
  const auto from = [&]<class From>() { (check_pair<Axis, Shape, From, P>(communicating), ...); };
  (from.template operator()<P>(), ...);
  CHECK(communicating == expected);
}

using single = placements<sw::replicate, sw::reduced, sw::shard<0>, sw::shard<1>, sw::partial<>>;

// Of 25 pairs these communicate: P -> R, U, S0, S1, P (made whole for the result); S0 -> R, U, S1, P; S1 -> R, U, S0, P; and
// R, U -> P, again for the result.
constexpr int single_communicating = 15;

TEST_CASE("all pairs of placements on two ranks, even") {
  check_pairs<ring<2>, sw::shape<4, 6>>(single{}, single_communicating);
}
TEST_CASE("all pairs of placements on three ranks, which divide neither dim") {
  check_pairs<ring<3>, sw::shape<5, 7>>(single{}, single_communicating);
}
TEST_CASE("all pairs of placements on four ranks, one of which holds nothing") {
  check_pairs<ring<4>, sw::shape<5, 3>>(single{}, single_communicating);
}
TEST_CASE("shards of whole blocks on three ranks") {
  check_pairs<ring<3>, sw::shape<8, 12>>(placements<sw::replicate, sw::shard<0, 2>, sw::shard<1, 3>, sw::shard<1>, sw::partial<>>{}, 18);
}

// --- two axes -------------------------------------------------------------------------------------------------------

struct row : sw::axis<2> {};
struct col : sw::axis<3> {};
using grid = sw::mesh<row, col>;

template <class P, class Q>
using input_on = sw::inputs<sw::input_tensor<double, sw::shape<5, 7>, sw::on<row, P>, sw::on<col, Q>>>;

struct gather_both {
  using inputs = input_on<sw::shard<0>, sw::shard<1>>;
  constexpr auto operator()(const auto&, const auto& x) const {
    return sw::redistribute<row, sw::replicate>(sw::redistribute<col, sw::replicate>(x));
  }
};
struct nested_gather {
  using inputs = input_on<sw::shard<0>, sw::shard<0>>;
  constexpr auto operator()(const auto&, const auto& x) const {
    return sw::redistribute<row, sw::replicate>(sw::redistribute<col, sw::replicate>(x));
  }
};
struct cross {
  using inputs = input_on<sw::shard<0>, sw::shard<1>>;
  constexpr auto operator()(const auto&, const auto& x) const {
    return sw::redistribute<col, sw::shard<0>>(sw::redistribute<row, sw::shard<1>>(sw::redistribute<col, sw::replicate>(x)));
  }
};
struct reduce_and_exchange {
  using inputs = input_on<sw::partial<>, sw::shard<0>>;
  constexpr auto operator()(const auto&, const auto& x) const {
    return sw::redistribute<col, sw::shard<1>>(sw::redistribute<row, sw::replicate>(x));
  }
};
struct scatter_both {
  using inputs = input_on<sw::partial<>, sw::partial<>>;
  constexpr auto operator()(const auto&, const auto& x) const {
    return sw::redistribute<col, sw::shard<0>>(sw::redistribute<row, sw::shard<0>>(x));
  }
};

struct resplit_inner {
  using inputs = sw::inputs<sw::input_tensor<double, sw::shape<24, 2>, sw::on<row, sw::shard<0>>, sw::on<col, sw::shard<0, 3>>>>;
  constexpr auto operator()(const auto&, const auto& x) const { return sw::redistribute<col, sw::shard<0>>(sw::redistribute<col, sw::shard<0, 6>>(x)); }
};

template <class Task>
void check_grid() {
  const outcome o = run_case<grid, Task, row, col>();
  CHECK(o.values);
  CHECK(o.bytes);
  CHECK(o.busiest);
  CHECK(o.written > 0);
}

TEST_CASE("transitions on a 2 by 3 mesh") {
  check_grid<gather_both>();
  check_grid<nested_gather>();
  check_grid<cross>();
  check_grid<reduce_and_exchange>();
  check_grid<scatter_both>();
  check_grid<resplit_inner>();
}

// --- whole training steps -------------------------------------------------------------------------------------------

template <class Step, class... Axes>
void check_step() {
  using mesh = typename Step::mesh_type;
  std::vector<std::array<std::int64_t, 2>> written(mesh::size);
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank);
    ex.initialise(7);
    for (int s = 1; s <= 2; ++s) {
      feed(ex, s);
      rank.reset_counts();
      ex.run(environment(s));
    }
    written[static_cast<std::size_t>(rank.index())] = {rank.bytes_written(0), rank.bytes_written(1)};
  });
  std::int64_t most[2]{}, most_together = 0;
  for (std::size_t r = 0; r < mesh::size; ++r) {
    CHECK(written[r] == std::array<std::int64_t, 2>{predicted<Step, Axes>()[r]...});
    CHECK(written[r][0] + written[r][1] == Step::total_comm_bytes(static_cast<int>(r)));
    for (std::size_t a = 0; a < 2; ++a) most[a] = std::max(most[a], written[r][a]);
    most_together = std::max(most_together, written[r][0] + written[r][1]);
  }
  constexpr std::int64_t busiest[] = {Step::template comm_bytes<Axes>...};
  CHECK(most[0] == busiest[0]);
  CHECK(most[1] == busiest[1]);
  CHECK(most_together == Step::total_comm_bytes());
  CHECK(most_together > 0);
}

TEST_CASE("bytes of a training step on 2 x 2 ranks") { check_step<step<float, 2, 2>, dp<2>, tp<2>>(); }
TEST_CASE("bytes of a training step on three data-parallel ranks") { check_step<step<float, 3, 1>, dp<3>, tp<1>>(); }
TEST_CASE("bytes of a training step on three tensor-parallel ranks") { check_step<step<float, 1, 3>, dp<1>, tp<3>>(); }
TEST_CASE("bytes of a sequence-parallel training step on 2 x 3 ranks") {
  check_step<step<double, 2, 3, sequence_parallel>, dp<2>, tp<3>>();
}

}  // namespace
