// SPDX-License-Identifier: Apache-2.0
// A step that keeps gradients from run to run, beside one that takes the same batch in pieces.
#pragma once

#include <accumulated.hpp>

namespace test::kept {

namespace acc = test::accumulated;
using acc::history;

// Piece k of N of every rank's rows, rank by rank, of rows that Ranks ranks split.
template <class T>
std::vector<T> piece_of(const std::vector<T>& all, int ranks, int pieces, int k, int width) {
  const int rows = static_cast<int>(all.size()) / width, of_piece = rows / (ranks * pieces);
  std::vector<T> v;
  for (int r = 0; r < ranks; ++r)
    for (int i = 0; i < of_piece * width; ++i)
      v.push_back(all[static_cast<std::size_t>((r * pieces + k) * of_piece * width + i)]);
  return v;
}

// The language model's loss over N, of rows / N rows.
template <int N, class Axes>
struct language_part {
  using inputs = fsdp::language<transformer_sizes, acc::rows / N, Axes>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto& targets, const auto& positions) const {
    return sw::scale(sw::cross_entropy(m(tokens, positions), targets), 1.0 / N);
  }
};
template <int N, class Plan, class Mesh, class Axes, class Pipeline = sw::pipeline<>,
          class Optimizer = sw::clip_norm<sw::sgd<true>>>
using step = sw::train_step<acc::model, language_part<N, Axes>, Plan, Mesh, Optimizer, Pipeline, double, place::backend>;

template <int N, class Axes>
void feed_part(auto& executor, int s, int k) {
  std::vector<std::int32_t> positions(transformer_sizes::time);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int32_t>(i);
  executor.set_input(0, piece_of(acc::letters(s), Axes::ranks, N, k, transformer_sizes::time));
  executor.set_input(1, piece_of(acc::letters(s + 100), Axes::ranks, N, k, transformer_sizes::time));
  executor.set_input(2, positions);
}

// Steps of N batches each, whose losses add up. Last: run for the last batch, in place of accumulate and update.
template <int N, class Step, class Axes, class Place = place>
history train(int steps, bool last = false) {
  history h;
  using lowered = sw::runtime::lowered<Step>;
  for (int i = 0; i < lowered::parameter_count(); ++i)
    h.parameters.emplace_back(static_cast<std::size_t>(numel(lowered::parameter_spec(i))));
  Place::template launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, Place::checks);
    ex.initialise(7);
    for (int s = 1; s <= steps; ++s) {
      double loss = 0;
      for (int k = 0; k < N; ++k) {
        feed_part<N, Axes>(ex, s, k);
        if (last && k + 1 == N) ex.run(acc::numbers(s));
        else ex.accumulate(acc::numbers(s));
        loss += ex.loss();
      }
      if (!last) ex.update(acc::numbers(s));
      if (rank.index() == 0) h.losses.push_back(loss);
    }
    for (int i = 0; i < ex.parameter_count(); ++i) ex.gather_parameter(i, h.parameters[static_cast<std::size_t>(i)]);
  });
  return h;
}

}  // namespace test::kept
