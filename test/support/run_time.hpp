// SPDX-License-Identifier: Apache-2.0
// Runs of programs with run-time sizes, bit by bit.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <tuple>
#include <type_traits>
#include <vector>

#include <shardwise/shardwise.hpp>

namespace run_time {

namespace sw = shardwise;

struct two_sizes {
  int batch, length;
};
// All outputs and gradients of each run, rank after rank, from launcher(f). What is poisoned in an executor, `checks` says.
template <class Step, int Outputs, class Launcher>
std::vector<double> all_numbers_of(const std::vector<two_sizes>& sizes, int columns, auto&& resize,
                                   sw::executor_checks checks, Launcher&& launcher) {
  std::vector<std::vector<double>> of(static_cast<std::size_t>(Step::mesh_type::size));
  launcher([&](auto& rank) {
    sw::executor<Step, std::remove_cvref_t<decltype(rank)>> run(rank, checks);
    for (const two_sizes& n : sizes) {
      resize(run, n);
      std::vector<double> x(static_cast<std::size_t>(n.batch * n.length * columns));
      for (std::size_t i = 0; i < x.size(); ++i) x[i] = std::sin(0.9 * static_cast<double>(i));
      run.set_input(0, x);
      run.run(sw::step_env{});
      for (int k = 0; k < Outputs; ++k) {
        const auto block = run.template output<double>(k);
        for (std::size_t i = 0; i < block.size(); ++i) of[static_cast<std::size_t>(rank.index())].push_back(block[i]);
      }
    }
  });
  std::vector<double> all;
  for (const auto& numbers : of) all.insert(all.end(), numbers.begin(), numbers.end());
  return all;
}
inline std::vector<std::uint64_t> bits_of(const std::vector<double>& numbers) {
  std::vector<std::uint64_t> bits;
  for (const double v : numbers) bits.push_back(std::bit_cast<std::uint64_t>(v));
  return bits;
}
template <class Step, int Outputs>
std::vector<std::uint64_t> all_bits_of(const std::vector<two_sizes>& sizes, int columns, auto&& resize) {
  return bits_of(all_numbers_of<Step, Outputs>(sizes, columns, resize, sw::executor_checks::poison,
                                               [](auto&& f) { sw::launch<typename Step::mesh_type>(f); }));
}
inline constexpr auto as_it_is = [](auto&, const two_sizes&) {};

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
template <std::int64_t Batch, std::int64_t Length, class Axis, class Backend = sw::host_backend>
using sentences_step =
    sw::gradient_step<on_sentences, sw::mesh<Axis>,
                      sw::inputs<sw::input_tensor<double, sw::shape<7, 6>, sw::on<Axis, sw::reduced>>,
                                 sw::input_tensor<double, sw::shape<6, 6>, sw::on<Axis, sw::reduced>>,
                                 sw::input_tensor<double, sw::shape<6, 5>, sw::on<Axis, sw::reduced>>,
                                 sw::input_tensor<std::int32_t, sw::shape<Batch, Length>, sw::on<Axis, sw::shard<0>>>,
                                 sw::input_tensor<std::int32_t, sw::shape<Batch, Length>, sw::on<Axis, sw::shard<0>>>>,
                      sw::wrt<0, 1, 2>, sw::pipeline<>, Backend>;

// The loss and all gradients of each run, as rank 0 has them, from launcher(f).
template <class Step, class Launcher>
std::vector<double> numbers_of(const std::vector<two_sizes>& sizes, bool dynamic, sw::executor_checks checks,
                               Launcher&& launcher) {
  std::vector<double> all;
  launcher([&](auto& rank) {
    sw::executor<Step, std::remove_cvref_t<decltype(rank)>> run(rank, checks);
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
          for (std::size_t i = 0; i < block.size(); ++i) all.push_back(block[i]);
      }
    }
  });
  return all;
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
template <std::int64_t Batch, std::int64_t Length, class Axis, class Backend = sw::host_backend>
using rows_step =
    sw::gradient_step<over_rows<Axis>, sw::mesh<Axis>,
                      sw::inputs<sw::input_tensor<double, sw::shape<Batch, Length, 3>, sw::on<Axis, sw::shard<0>>>>,
                      sw::wrt<0>, sw::pipeline<>, Backend>;
}  // namespace run_time
