// SPDX-License-Identifier: Apache-2.0
// Communication volumes as constants equal the bytes counted where they are copied; redistribution loses nothing.
#include <doctest/doctest.h>

#include <algorithm>
#include <array>
#include <gpt.hpp>
#include <initializer_list>
#include <mutex>
#include <vector>

namespace {

namespace sw = shardwise;
using namespace test::gpt;

template <class Bound = sw::unbound>
struct nothing : sw::module<nothing<Bound>, Bound> {
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
        v = k > 0 ? 3.0 * k + static_cast<double>(i % 5)
                  : v - 3.0 * n * (n - 1) / 2 - static_cast<double>((n - 1) * (i % 5));
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

// --- one axis: every pair of placements, lowered by hand ------------------------------------------------------------

template <int N>
struct ring : sw::axis<N> {};

sw::spec tensor_on(int ranks, std::initializer_list<std::int64_t> extents, sw::placement p) {
  const std::int32_t sizes[sw::max_axes] = {ranks, 1, 1, 1};
  sw::spec s = sw::empty_spec(sw::dtype::f64, 1, sizes, sw::device_kind::host);
  for (const std::int64_t e : extents) s.extent[s.rank++] = e;
  sw::make_contiguous(s);
  s.place[0] = p;
  return s;
}

// One redistribution as the executor lowers it; a change of name alone copies.
template <class Rank>
std::vector<double> redistribute(const sw::spec& from, const sw::spec& to, std::vector<double> x, Rank& rank) {
  const int* const c = rank.coordinate().data();
  sw::runtime::call k;
  k.inputs = 1;
  k.l[0] = sw::runtime::local_layout(from, c);
  k.l[sw::runtime::result] = sw::runtime::local_layout(to, c);
  sw::runtime::lower_redistribute(k, 0, from, to, c);
  if (k.kind == sw::transition::none) return x;
  std::vector<double> y(static_cast<std::size_t>(k.l[sw::runtime::result].numel()));
  std::vector<double> workspace(static_cast<std::size_t>((numel(from) + 1) * k.ranks));
  k.p[0] = x.data();
  k.p[sw::runtime::result] = y.data();
  k.workspace = workspace.data();
  sw::runtime::run_kernel<sw::op_code::redistribute, double, sw::no_expression>(k, {}, rank);
  rank.barrier();
  return y;
}

// Whether the block is that of the tensor fill() describes; a partial one is summed over the ranks first.
template <class Rank>
bool holds(const sw::spec& s, const std::vector<double>& block, Rank& rank) {
  sw::spec whole = s;
  if (s.place[0].is_partial()) whole.place[0] = sw::replicate_value();
  const std::vector<double> x = redistribute(s, whole, block, rank);
  bool same = true;
  std::size_t count = 0;
  sw::runtime::each_element(sw::runtime::local_layout(whole, rank.coordinate().data()),
                            [&](std::int64_t i, std::int64_t global) {
                              same = same && x[static_cast<std::size_t>(i)] == value_at(global);
                              ++count;
                            });
  return same && count == x.size();
}

struct tally {
  int pairs = 0, communicating = 0, wrong_values = 0, wrong_back = 0, wrong_bytes = 0;
};

template <int N>
tally try_pairs(std::initializer_list<std::int64_t> extents, const std::vector<sw::placement>& places) {
  using mesh = sw::mesh<ring<N>>;
  tally t;
  std::mutex gate;
  sw::launch<mesh>([&](auto& rank) {
    const int* const c = rank.coordinate().data();
    for (const sw::placement p : places)
      for (const sw::placement q : places) {
        const sw::spec from = tensor_on(N, extents, p), to = tensor_on(N, extents, q);
        std::vector<double> x(static_cast<std::size_t>(sw::local_numel(from, c)));
        fill(x, from, sw::runtime::local_layout(from, c), rank.coordinate());
        rank.reset_counts();
        const std::vector<double> y = redistribute(from, to, x, rank);
        const bool bytes = rank.bytes_written(0) == sw::bytes_sent(from, to, 0, c);
        rank.reset_counts();
        const std::vector<double> z = redistribute(to, from, y, rank);
        const bool bytes_back = rank.bytes_written(0) == sw::bytes_sent(to, from, 0, c);
        const bool there = holds(to, y, rank), back = holds(from, z, rank);
        const std::lock_guard lock(gate);
        t.wrong_values += there ? 0 : 1;
        t.wrong_back += back ? 0 : 1;
        t.wrong_bytes += bytes && bytes_back ? 0 : 1;
        if (rank.index() == 0) {
          ++t.pairs;
          t.communicating += sw::communicates(sw::transition_of(p, q, N)) ? 1 : 0;
        }
      }
  });
  return t;
}

template <int N>
void check_pairs(std::initializer_list<std::int64_t> extents, std::vector<sw::placement> places, int communicating) {
  places.push_back(sw::replicate_value());
  places.push_back(sw::reduced_value());
  places.push_back(sw::partial_value());
  const tally t = try_pairs<N>(extents, places);
  CHECK(t.pairs == static_cast<int>(places.size() * places.size()));
  CHECK(t.communicating == communicating);
  CHECK(t.wrong_values == 0);
  CHECK(t.wrong_back == 0);
  CHECK(t.wrong_bytes == 0);
}

// k shards: k (k - 1) exchanges, 2 k gathers (to replicate and reduced), k + 2 reductions.
TEST_CASE("all pairs of placements on two ranks") {
  check_pairs<2>({4, 6}, {sw::shard_value(0), sw::shard_value(1)}, 10);
  check_pairs<2>({5, 3}, {sw::shard_value(0), sw::shard_value(1)}, 10);
  check_pairs<2>({3, 4, 5}, {sw::shard_value(0), sw::shard_value(1), sw::shard_value(2)}, 17);
}
TEST_CASE("all pairs of placements on three ranks, which divide no dim") {
  check_pairs<3>({5, 7}, {sw::shard_value(0), sw::shard_value(1)}, 10);
  check_pairs<3>({2, 7, 4, 5}, {sw::shard_value(0), sw::shard_value(1), sw::shard_value(2), sw::shard_value(3)}, 26);
}
TEST_CASE("all pairs of placements on four ranks, some of which hold nothing") {
  check_pairs<4>({5, 3}, {sw::shard_value(0), sw::shard_value(1)}, 10);
  check_pairs<4>({1, 9}, {sw::shard_value(0), sw::shard_value(1)}, 10);
  check_pairs<4>({2, 1}, {sw::shard_value(0), sw::shard_value(1)}, 10);
}
TEST_CASE("all pairs of placements of an empty tensor") {
  check_pairs<3>({0, 4}, {sw::shard_value(0), sw::shard_value(1)}, 10);
}
TEST_CASE("all pairs of shards of whole blocks, with other boundaries of one dim") {
  const std::vector<sw::placement> shards = {sw::shard_value(0), sw::shard_value(0, 2), sw::shard_value(0, 4),
                                             sw::shard_value(1), sw::shard_value(1, 3), sw::shard_value(1, 6)};
  check_pairs<3>({8, 12}, shards, 50);
  check_pairs<4>({8, 12, 3}, shards, 50);
  check_pairs<2>({20, 18}, shards, 50);
}

// --- one axis, as programs
// --------------------------------------------------------------------------------------------

template <class Axis, class Shape, class From, class To>
struct one_way {
  using inputs = sw::inputs<sw::input_tensor<double, Shape, sw::on<Axis, From>>>;
  constexpr auto operator()(const auto&, const auto& x) const { return sw::redistribute<Axis, To>(x); }
};

template <class Axis, class Shape, class From, class To>
void check_program() {
  const outcome o = run_case<sw::mesh<Axis>, one_way<Axis, Shape, From, To>, Axis>();
  CHECK(o.values);
  CHECK(o.bytes);
  CHECK(o.busiest);
  CHECK(o.written > 0);
}

TEST_CASE("one collective of each kind as a program on three ranks") {
  check_program<ring<3>, sw::shape<5, 7>, sw::partial<>, sw::reduced>();
  check_program<ring<3>, sw::shape<5, 7>, sw::partial<>, sw::shard<1>>();
  check_program<ring<3>, sw::shape<5, 7>, sw::shard<0>, sw::replicate>();
  check_program<ring<3>, sw::shape<5, 7>, sw::shard<0>, sw::shard<1>>();
  check_program<ring<3>, sw::shape<8, 12>, sw::shard<1, 3>, sw::shard<1>>();
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
  using inputs =
      sw::inputs<sw::input_tensor<double, sw::shape<24, 2>, sw::on<row, sw::shard<0>>, sw::on<col, sw::shard<0, 3>>>>;
  constexpr auto operator()(const auto&, const auto& x) const {
    return sw::redistribute<col, sw::shard<0>>(sw::redistribute<col, sw::shard<0, 6>>(x));
  }
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
