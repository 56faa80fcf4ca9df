// SPDX-License-Identifier: Apache-2.0
// Several run-time sizes in one program, and extents that are products of them: the same bits as programs of these sizes.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cstdint>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "run_time.hpp"

namespace {

namespace sw = shardwise;
using run_time::all_bits_of, run_time::as_it_is, run_time::rows_step, run_time::sentences_step, run_time::two_sizes;

struct one : sw::axis<1> {};
struct dp : sw::axis<2> {};
struct three : sw::axis<3> {};
struct four : sw::axis<4> {};

template <class Step>
std::vector<std::uint64_t> bits_of(const std::vector<two_sizes>& sizes, bool dynamic) {
  return run_time::bits_of(run_time::numbers_of<Step>(sizes, dynamic, sw::executor_checks::poison,
                                                      [](auto&& f) { sw::launch<typename Step::mesh_type>(f); }));
}
template <class Axis>
void sentences_equal() {
  using any = sentences_step<sw::dyn<5>, sw::dyn<6, 1>, Axis>;
  static_assert(any::dyn_bound == sw::dyn_bounds{{5, 6}} && any::dyn_bound.count() == 2);
  const auto one_by_one = bits_of<any>({{5, 6}, {2, 6}, {5, 2}, {2, 3}, {3, 4}}, true);
  std::vector<std::uint64_t> fixed;
  const auto add = [&fixed](const std::vector<std::uint64_t>& more) { fixed.insert(fixed.end(), more.begin(), more.end()); };
  add(bits_of<sentences_step<5, 6, Axis>>({{5, 6}}, false));
  add(bits_of<sentences_step<2, 6, Axis>>({{2, 6}}, false));
  add(bits_of<sentences_step<5, 2, Axis>>({{5, 2}}, false));
  add(bits_of<sentences_step<2, 3, Axis>>({{2, 3}}, false));
  add(bits_of<sentences_step<3, 4, Axis>>({{3, 4}}, false));
  CHECK(one_by_one.size() == 5 * (1 + 42 + 36 + 30));
  CHECK(one_by_one == fixed);
  for (const two_sizes none : {two_sizes{0, 4}, two_sizes{0, 0}}) {  // of no sentences: sums of nothing
    const auto empty = bits_of<any>({{4, 5}, none}, true);
    CHECK(empty.size() == 2 * (1 + 42 + 36 + 30));
    CHECK(std::all_of(empty.begin() + 109, empty.end(), [](std::uint64_t v) { return std::bit_cast<double>(v) == 0; }));
  }
}
template <class Axis>
void rows_equal() {
  using any = rows_step<sw::dyn<7>, sw::dyn<5, 1>, Axis>;
  const auto both = [](auto& run, const two_sizes& n) { run.resize(n.batch, n.length); };
  CHECK(all_bits_of<any, 4>({{7, 5}}, 3, both) == all_bits_of<rows_step<7, 5, Axis>, 4>({{7, 5}}, 3, as_it_is));
  CHECK(all_bits_of<any, 4>({{6, 2}}, 3, both) == all_bits_of<rows_step<6, 2, Axis>, 4>({{6, 2}}, 3, as_it_is));
  CHECK(all_bits_of<any, 4>({{3, 4}}, 3, both) == all_bits_of<rows_step<3, 4, Axis>, 4>({{3, 4}}, 3, as_it_is));
  CHECK(all_bits_of<any, 4>({{2, 3}}, 3, both) == all_bits_of<rows_step<2, 3, Axis>, 4>({{2, 3}}, 3, as_it_is));
}

}  // namespace

TEST_CASE("dyn: a batch and a length of a run's own, and their product, equal the programs of these sizes bit by bit") {
  SUBCASE("1 rank") { sentences_equal<one>(); }
  SUBCASE("2 ranks") { sentences_equal<dp>(); }
  SUBCASE("3 ranks") { sentences_equal<three>(); }
  SUBCASE("4 ranks") { sentences_equal<four>(); }
}

TEST_CASE("dyn: rows that are split by a run's length are gathered, scattered and moved as those of that length") {
  SUBCASE("2 ranks") { rows_equal<dp>(); }
  SUBCASE("3 ranks") { rows_equal<three>(); }
  SUBCASE("4 ranks") { rows_equal<four>(); }
}
