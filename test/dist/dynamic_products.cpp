// SPDX-License-Identifier: Apache-2.0
// Several run-time sizes in one program, and extents that are products of them: the same bits as programs of these sizes.
#include <doctest/doctest.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "run_time.hpp"

namespace {

namespace sw = shardwise;
using run_time::all_bits_of, run_time::as_it_is, run_time::two_sizes;

struct one : sw::axis<1> {};
struct dp : sw::axis<2> {};
struct three : sw::axis<3> {};
struct four : sw::axis<4> {};

// Sentences, as many and as long as a run says: look-ups, attention, products, a loss over all words, means along each sentence.
struct on_sentences {
  constexpr auto operator()(const auto& table, const auto& w, const auto& out, const auto& words, const auto& next) const {
    using W = std::remove_cvref_t<decltype(words)>;
    const auto x = sw::embedding(table, words);                         // (batch, length, 6)
    const auto heads = sw::transpose<1, 2>(sw::unflatten<2, 2, 3>(x));  // (batch, 2, length, 3)
    const auto seen = sw::scaled_dot_product_attention<sw::attention_options{.causal = true}>(heads, heads, heads);
    const auto joined = sw::flatten<2, 3>(sw::transpose<1, 2>(seen));
    const auto rows = sw::flatten<0, 1>(sw::relu(sw::matmul(joined, w)) + x);  // (batch * length, 6)
    const auto scores = sw::matmul(rows, out);
    const auto back = sw::unflatten<0, sw::spelled(W::sp, 0), sw::spelled(W::sp, 1)>(scores);
    return sw::sum(sw::cross_entropy_rows(scores, sw::flatten<0, 1>(next))) + sw::sum(sw::square(sw::mean<1>(back)));
  }
};
template <std::int64_t Batch, std::int64_t Length, class Axis>
using sentences_step =
    sw::gradient_step<on_sentences, sw::mesh<Axis>,
                      sw::inputs<sw::input_tensor<double, sw::shape<7, 6>, sw::on<Axis, sw::reduced>>,
                                 sw::input_tensor<double, sw::shape<6, 6>, sw::on<Axis, sw::reduced>>,
                                 sw::input_tensor<double, sw::shape<6, 5>, sw::on<Axis, sw::reduced>>,
                                 sw::input_tensor<std::int32_t, sw::shape<Batch, Length>, sw::on<Axis, sw::shard<0>>>,
                                 sw::input_tensor<std::int32_t, sw::shape<Batch, Length>, sw::on<Axis, sw::shard<0>>>>,
                      sw::wrt<0, 1, 2>>;

// The loss and all gradients of each run, bit by bit.
template <class Step>
std::vector<std::uint64_t> bits_of(const std::vector<two_sizes>& sizes, bool dynamic) {
  std::vector<std::uint64_t> bits;
  sw::launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_cvref_t<decltype(rank)>> run(rank, sw::executor_checks::poison);
    const std::vector<std::size_t> whole = {42, 36, 30};
    for (int k = 0; k < 3; ++k) {
      std::vector<double> x(whole[static_cast<std::size_t>(k)]);
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.9 * static_cast<double>(i) + k);
      run.set_input(k, x);
    }
    for (const auto [batch, length] : sizes) {
      if (dynamic) run.resize(batch, length);
      std::vector<std::int32_t> words(static_cast<std::size_t>(batch * length)), next = words;
      for (std::size_t i = 0; i < words.size(); ++i) {
        words[i] = static_cast<std::int32_t>(i * 5 % 7);
        next[i] = static_cast<std::int32_t>(i * 3 % 5);
      }
      run.set_input(3, words);
      run.set_input(4, next);
      run.run(sw::step_env{});
      for (int k = 0; k < 4; ++k) {
        const auto block = run.template output<double>(k);
        if (rank.index() == 0)
          for (const double v : block.data) bits.push_back(std::bit_cast<std::uint64_t>(v));
      }
    }
  });
  return bits;
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
// Rows that are split by whole sentences are gathered, and what comes back to them is scattered; and they move to another dim.
template <class Axis>
struct over_rows {
  constexpr auto operator()(const auto& x) const {
    const auto rows = sw::flatten<0, 1>(sw::square(x));  // blocks of the length's rows
    const auto whole = sw::redistribute<Axis, sw::reduced>(rows);
    const auto columns = sw::redistribute<Axis, sw::shard<1>>(rows);
    return std::tuple{sw::sum(sw::matmul(whole, sw::transpose<0, 1>(whole))) +
                          sw::redistribute<Axis, sw::reduced>(sw::sum(columns * columns)),
                      sw::redistribute<Axis, sw::replicate>(rows), columns};
  }
};
template <std::int64_t Batch, std::int64_t Length, class Axis>
using rows_step =
    sw::gradient_step<over_rows<Axis>, sw::mesh<Axis>,
                      sw::inputs<sw::input_tensor<double, sw::shape<Batch, Length, 3>, sw::on<Axis, sw::shard<0>>>>,
                      sw::wrt<0>>;
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
