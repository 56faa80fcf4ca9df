// SPDX-License-Identifier: Apache-2.0
// Groups of parameters over 1, 2, 3, 4 and 8 ranks: sizes worked by hand, and every element at one place.

#include <shardwise/vocabulary/axis.hpp>
#include <shardwise/vocabulary/flat_group.hpp>
#include <shardwise/vocabulary/flat_part.hpp>
#include <shardwise/vocabulary/operand.hpp>

namespace sw = shardwise;

namespace {

struct shape2 {
  std::int64_t rows, row;
};

// --- worked by hand --------------------------------------------------------------------------------------------------

// (5, 2) and (3) over two ranks
constexpr auto two = [] {
  sw::flat_group<2> g(2);
  g.add(5, 2);
  g.add(3, 1);
  return g;
}();
static_assert(two.entries[0].padded() == 6 && two.entries[1].padded() == 2 && two.part == 8);
static_assert(two.gather_input() == 8 && two.gather_output() == 16);
static_assert(two.scatter_input() == 16 && two.scatter_output() == 8);
constexpr bool holds(int k, int r, std::int64_t begin, std::int64_t size) {
  return two.rows_of(k, r).begin == begin && two.rows_of(k, r).size == size;
}
static_assert(holds(0, 0, 0, 3) && holds(1, 0, 0, 2) && two.padding(0) == 0);
static_assert(holds(0, 1, 3, 2) && holds(1, 1, 2, 1) && two.padding(1) == 2 + 1);
// views of the scattered gradients: (3 or 2, 2) at 0, (2 or 1) at 6
static_assert(two.entries[0].offset == 0 && two.entries[1].offset == 6);
static_assert(two.gathered(0, 5) == 5 && two.gathered(0, 6) == 8 && two.gathered(1, 1) == 7 && two.gathered(1, 2) == 14);

// dim 0 = 5 over four ranks: 2, 2, 1, 0 rows, two everywhere with padding, eight gathered
constexpr auto four = [] {
  sw::flat_group<1> g(4);
  g.add(5, 1);
  return g;
}();
static_assert(four.gather_output() == 8 && four.part == 2 && four.padding(3) == 2);
static_assert(four.rows_of(0, 2).size == 1 && four.rows_of(0, 3).size == 0 && four.rows_of(0, 3).begin == 5);

// a two-layer perceptron, 4 to 16 to 4: 148 elements, 74 a rank, nothing padded
constexpr auto mlp = [] {
  sw::flat_group<4> g(2);
  g.add(16, 4);
  g.add(16, 1);
  g.add(4, 16);
  g.add(4, 1);
  return g;
}();
static_assert(mlp.part == 74 && mlp.gather_output() == 148 && mlp.padding(0) == 0 && mlp.padding(1) == 0);

// beside tensor parallelism: (16, 10) split by rows over two ranks leaves (8, 10), 80 and 8 and 80 and 10 elements
struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using grid = sw::mesh<dp, tp>;
template <class Shape, class P>
constexpr sw::spec on_tp = sw::spec_of<float, Shape, grid, sw::on<tp, P>>::value;
constexpr auto split_mlp = [] {
  sw::flat_group<4> g(2);
  const int c[] = {0, 1};
  g.add(on_tp<sw::shape<16, 10>, sw::shard<0>>, c);
  g.add(on_tp<sw::shape<16>, sw::shard<0>>, c);
  g.add(on_tp<sw::shape<10, 16>, sw::shard<1>>, c);
  g.add(on_tp<sw::shape<10>, sw::replicate>, c);
  return g;
}();
static_assert(split_mlp.part == 178 / 2 && split_mlp.entries[2].row == 8 && split_mlp.entries[2].rows == 10);

// over capacity there is no layout
template <int Parameters>
struct laid_out {
  static constexpr std::int64_t part() {
    sw::flat_group<2> g(2);
    for (int i = 0; i < Parameters; ++i) g.add(2, 1);
    return g.part;
  }
};
template <class F>
concept constant = requires { typename std::integral_constant<std::int64_t, F::part()>; };
static_assert(constant<laid_out<2>> && !constant<laid_out<3>>);

// --- laws ------------------------------------------------------------------------------------------------------------

// Marks every element's place in the gathered buffer: none twice, and as many as there are elements; ranks hold the rows
// that the chunk rule gives them.
template <int Count>
constexpr bool lawful(int ranks, const shape2 (&shapes)[Count]) {
  sw::flat_group<Count> g(ranks);
  std::int64_t elements = 0, padding = 0;
  for (const auto& s : shapes) {
    g.add(s.rows, s.row);
    elements += s.rows * s.row;
  }
  bool taken[1024]{};
  if (g.gather_output() > 1024) return false;
  for (int k = 0; k < Count; ++k)
    for (std::int64_t i = 0; i < g.entries[k].numel(); ++i) {
      const sw::flat_position at = g.position(k, i);
      const sw::interval mine = g.rows_of(k, at.rank);
      const std::int64_t row = i / g.entries[k].row;
      if (row < mine.begin || row >= mine.begin + mine.size) return false;
      if (at.offset < g.entries[k].offset || at.offset >= g.entries[k].offset + g.entries[k].padded()) return false;
      bool& place = taken[g.gathered(k, i)];
      if (place) return false;
      place = true;
    }
  for (int r = 0; r < ranks; ++r) padding += g.padding(r);
  return g.gather_output() == elements + padding && g.scatter_input() == g.scatter_output() * ranks;
}
constexpr shape2 awkward[] = {{5, 2}, {3, 1}, {1, 7}, {8, 3}, {9, 1}, {0, 4}, {6, 0}, {2, 2}, {7, 5}};
constexpr shape2 even[] = {{16, 4}, {16, 1}, {8, 2}, {24, 3}};
static_assert(lawful(1, awkward) && lawful(2, awkward) && lawful(3, awkward));
static_assert(lawful(4, awkward) && lawful(8, awkward));
static_assert(lawful(1, even) && lawful(2, even) && lawful(3, even) && lawful(4, even) && lawful(8, even));

// --- averages --------------------------------------------------------------------------------------------------------

constexpr bool averages(int ranks, int before, double after) {
  const sw::split_average a = sw::average_over(ranks);
  return a.before == before && a.after == after && a.before * a.after == ranks;
}
static_assert(averages(1, 1, 1) && averages(2, 2, 1) && averages(3, 2, 1.5) && averages(4, 2, 2) && averages(6, 4, 1.5));
static_assert(averages(8, 4, 2) && averages(12, 4, 3) && averages(16, 4, 4) && averages(32, 8, 4) && averages(64, 8, 8));

// two replicas of two shards: ranks 0 and 1 shard together, 0 and 2 are replicas
struct replica : sw::axis<2> {};
struct rows : sw::axis<2> {};
using hybrid = sw::mesh<replica, rows>;
static_assert(hybrid::group<rows>(0) == std::array{0, 1} && hybrid::group<rows>(3) == std::array{2, 3});
static_assert(hybrid::group<replica>(0) == std::array{0, 2} && hybrid::group<replica>(3) == std::array{1, 3});

// --- after the forward pass --------------------------------------------------------------------------------------------

constexpr bool keeps(int k, int ranks, sw::reshard kind, int groups, int group) {
  const sw::reshard_setting s = sw::reshard_over_ranks(k, ranks);
  return !s.error && s.kind == kind && s.groups == groups && s.group == group;
}
static_assert(keeps(2, 8, sw::reshard::to_groups, 4, 2) && keeps(4, 8, sw::reshard::to_groups, 2, 4));
static_assert(keeps(1, 8, sw::reshard::never, 8, 1) && keeps(8, 8, sw::reshard::fully, 1, 8));
static_assert(keeps(1, 1, sw::reshard::never, 1, 1));
constexpr bool refuses(int k, int ranks) {
  const sw::finding f = sw::reshard_over_ranks(k, ranks).error;
  return f.what == sw::problem::fsdp_factor && f.have == k && f.want == ranks;
}
static_assert(refuses(3, 8) && refuses(0, 8) && refuses(-2, 8) && refuses(16, 8));
struct eight : sw::axis<8> {};
static_assert(sw::reshard_over<eight, 2>::value.groups == 4);

// --- one flat parameter of a group ---------------------------------------------------------------------------------------

// Every element of every parameter is in one rank's block alone, at the place where it lies in the flat parameter.
template <int Count>
constexpr bool runs_lawful(int ranks, const std::int64_t (&counts)[Count]) {
  std::int64_t all = 0;
  for (const std::int64_t n : counts) all += n;
  const std::int64_t share = (all + ranks - 1) / ranks;  // the last ones' ends are zeros
  std::int64_t begin = 0;
  for (const std::int64_t n : counts) {
    sw::flat_part part;
    part.leaf = 0;
    part.begin = begin;
    part.count = n;
    std::int64_t next = 0;  // of the parameter's elements: ranks hold them in order
    for (int r = 0; r < ranks; ++r) {
      const sw::interval block{share * r, share};
      const sw::flat_run run = sw::run_within(part, block);
      if (run.count < 0 || (run.count > 0 && run.first != next)) return false;
      next += run.count;
      for (std::int64_t i = 0; i < run.count; ++i)
        if (begin + run.first + i != block.begin + run.at + i || run.at + i >= share || run.at < 0) return false;
    }
    if (next != n) return false;
    begin += n;
  }
  return true;
}
constexpr std::int64_t counts[] = {5, 0, 1, 17, 3, 8, 2, 0, 29, 4};
static_assert(runs_lawful(1, counts) && runs_lawful(2, counts) && runs_lawful(3, counts) && runs_lawful(4, counts) &&
              runs_lawful(8, counts) && runs_lawful(69, counts) && runs_lawful(100, counts));
// what is not within is nothing, also right at its ends
constexpr bool no_run(std::int64_t begin, std::int64_t size) {
  sw::flat_part part;
  part.begin = 10;
  part.count = 5;
  const sw::flat_run run = sw::run_within(part, {begin, size});
  return run.count == 0 && run.first == 0 && run.at == 0;
}
static_assert(no_run(0, 10) && no_run(15, 5) && no_run(12, 0) && !no_run(0, 11) && !no_run(14, 5));

}  // namespace
