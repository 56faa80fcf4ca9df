// SPDX-License-Identifier: Apache-2.0
// A small language model on any data-parallel by tensor-parallel mesh: its plans, its data, and a training run.
#pragma once

#include <array>
#include <cstdint>
#include <models.hpp>
#include <place.hpp>
#include <shardwise/shardwise.hpp>
#include <type_traits>
#include <utility>
#include <vector>

namespace test::gpt {

struct sizes : transformer_sizes {
  static constexpr int vocabulary = 256;
  static constexpr int width = 64;
};
struct dropout_sizes : sizes {
  static constexpr double dropout = 0.1;
};
template <int Layers>
struct deep_sizes : sizes {
  static constexpr int layers = Layers;
};

inline constexpr int batch = 4;
inline constexpr int head = sizes::width / sizes::heads;

template <int N>
struct dp : sw::axis<N> {};
template <int N>
struct tp : sw::axis<N> {};

// Attention split by heads, feed-forward by hidden units; activations between them are whole.
template <class Dp, class Tp>
struct tensor_parallel {
  using type =
      sw::plan<sw::data_parallel<Dp>, sw::at<"layers.*.attention.wq", sw::colwise<Tp, head>>,
               sw::at<"layers.*.attention.wk", sw::colwise<Tp, head>>,
               sw::at<"layers.*.attention.wv", sw::colwise<Tp, head>>,
               sw::at<"layers.*.attention.wo", sw::rowwise<Tp, head>>, sw::at<"layers.*.feed_forward.w1", sw::colwise<Tp>>,
               sw::at<"layers.*.feed_forward.w2", sw::rowwise<Tp>>>;
};

// The same, but activations between the two are split along time: gathered before, scattered after.
template <class Dp, class Tp>
struct sequence_parallel {
  using rows = sw::input<sw::shard<1>>;
  using scattered = sw::output<sw::shard<1>>;
  using type = sw::plan<sw::data_parallel<Dp>, sw::at<"tok_embeddings", sw::prepare_output<Tp, sw::shard<1>>>,
                        sw::at<"pos_embeddings", sw::prepare_output<Tp, sw::shard<0>>>,
                        sw::at<"layers.*.*_norm", sw::sequence_parallel<Tp>>,
                        sw::at<"layers.*.attention.wq", sw::colwise<Tp, head, rows>>,
                        sw::at<"layers.*.attention.wk", sw::colwise<Tp, head, rows>>,
                        sw::at<"layers.*.attention.wv", sw::colwise<Tp, head, rows>>,
                        sw::at<"layers.*.attention.wo", sw::rowwise<Tp, head, scattered>>,
                        sw::at<"layers.*.feed_forward.w1", sw::colwise<Tp, 1, rows>>,
                        sw::at<"layers.*.feed_forward.w2", sw::rowwise<Tp, 1, scattered>>,
                        sw::at<"norm", sw::sequence_parallel<Tp>, sw::prepare_output<Tp, sw::replicate>>>;
};

template <class T, int D, int N, template <class, class> class Plan = tensor_parallel, class Sizes = sizes,
          class Place = place, class Pipeline = sw::pipeline<>>
using step =
    sw::train_step<transformer<Sizes>::template model, language_task<Sizes, batch, dp<D>>, typename Plan<dp<D>, tp<N>>::type,
                   sw::mesh<dp<D>, tp<N>>, sw::clip_norm<sw::adamw<true>>, Pipeline, T, typename Place::backend>;

struct data {
  std::array<std::int32_t, batch * sizes::time> tokens{}, targets{};
  std::array<std::int32_t, sizes::time> positions{};
};

// Another batch for each step.
inline data batch_of(int step) {
  data d;
  std::uint32_t x = 12345U + 7919U * static_cast<std::uint32_t>(step);
  const auto next = [&x] {
    x = x * 1664525U + 1013904223U;
    return static_cast<std::int32_t>(x >> 24);
  };
  for (auto& t : d.tokens) t = next();
  for (auto& t : d.targets) t = next();
  for (std::size_t i = 0; i < d.positions.size(); ++i) d.positions[i] = static_cast<std::int32_t>(i);
  return d;
}

inline void feed(auto& executor, int step) {
  const data d = batch_of(step);
  executor.set_input(0, d.tokens);
  executor.set_input(1, d.targets);
  executor.set_input(2, d.positions);
}

inline sw::step_env environment(int step) {
  sw::step_env env;
  env.seed = 11;
  env.step = step;
  env.lr = 1e-3;
  env.weight_decay = 0.1;
  env.max_norm = 1;
  return env;
}

template <class T>
struct history {
  std::vector<std::vector<T>> losses;      // [rank][step]
  std::vector<std::vector<T>> parameters;  // whole, after the last step
};

// `options` go to the executors.
template <class Step, class Place = place, class... Options>
history<typename Step::element> train(int steps, Options... options) {
  using mesh = typename Step::mesh_type;
  history<typename Step::element> h;
  h.losses.resize(mesh::size);
  h.parameters.resize(Step::parameter_total);
  for (int i = 0; i < Step::parameter_total; ++i)
    for (int id = 0; id < Step::program.node_count; ++id)
      if (Step::program.nodes[id].op == sw::op_code::param && Step::program.nodes[id].a.v[0] == i)
        h.parameters[static_cast<std::size_t>(i)].resize(static_cast<std::size_t>(numel(Step::program.spec_of(id))));
  Place::template launch<mesh>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, options...);
    ex.initialise(7);
    for (int s = 1; s <= steps; ++s) {
      feed(ex, s);
      ex.run(environment(s));
      h.losses[static_cast<std::size_t>(rank.index())].push_back(ex.loss());
    }
    for (int i = 0; i < ex.parameter_count(); ++i) ex.gather_parameter(i, h.parameters[static_cast<std::size_t>(i)]);
  });
  return h;
}

}  // namespace test::gpt
