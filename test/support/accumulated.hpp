// SPDX-License-Identifier: Apache-2.0
// A small transformer whose train step takes its batch in pieces: plans, meshes, steps, and a training run.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <fsdp.hpp>
#include <place.hpp>
#include <vector>

namespace test::accumulated {

using fsdp::batch_axes;
using fsdp::dp;
using fsdp::rep;
using fsdp::tp;

inline constexpr int rows = 8;

template <int Rows, class Axes>
struct language_mean {
  using inputs = fsdp::language<transformer_sizes, Rows, Axes>;
  constexpr auto operator()(const auto& m, const auto& tokens, const auto& targets, const auto& positions) const {
    return sw::cross_entropy(m(tokens, positions), targets);
  }
};
template <class B>
using model = transformer<transformer_sizes>::model<B>;

// The third input has positions, which all pieces read.
template <int N>
using pieces = sw::accumulate<N, sw::whole_inputs<2>>;

template <int D>
using replicated = sw::plan<sw::data_parallel<dp<D>>>;
template <class Data, class... Options>
using blocks = sw::at<"layers.*", sw::fully_shard<Data, Options...>>;
template <class Tp>
using attention_and_mlp =
    sw::plan<sw::at<"layers.*.attention.wq", sw::colwise<Tp, 4>>, sw::at<"layers.*.attention.wk", sw::colwise<Tp, 4>>,
             sw::at<"layers.*.attention.wv", sw::colwise<Tp, 4>>, sw::at<"layers.*.attention.wo", sw::rowwise<Tp, 4>>,
             sw::at<"layers.*.feed_forward.w1", sw::colwise<Tp>>, sw::at<"layers.*.feed_forward.w2", sw::rowwise<Tp>>>;

// A plan with more entries.
template <class Plan, class... More>
struct extended;
template <class... E, class... More>
struct extended<sw::plan<E...>, More...> {
  using type = sw::plan<E..., More...>;
};
template <class Plan, class... More>
using with = typename extended<Plan, More...>::type;

template <class Plan, class Mesh, class Axes, class Pipeline = sw::pipeline<>, int Rows = rows>
using step = sw::train_step<model, language_mean<Rows, Axes>, Plan, Mesh, sw::clip_norm<sw::sgd<true>>, Pipeline, double,
                            place::backend>;

struct history {
  std::vector<double> losses;
  std::vector<std::vector<double>> parameters;
};

inline std::vector<std::int32_t> letters(int salt) {
  std::vector<std::int32_t> v(static_cast<std::size_t>(rows * transformer_sizes::time));
  std::uint32_t x = 12345U + 7919U * static_cast<std::uint32_t>(salt);
  for (auto& t : v) {
    x = x * 1664525U + 1013904223U;
    t = static_cast<std::int32_t>(x >> 29);
  }
  return v;
}
inline void feed(auto& executor, int step) {
  std::vector<std::int32_t> positions(transformer_sizes::time);
  for (std::size_t i = 0; i < positions.size(); ++i) positions[i] = static_cast<std::int32_t>(i);
  executor.set_input(0, letters(step));
  executor.set_input(1, letters(step + 100));
  executor.set_input(2, positions);
}
inline sw::step_env numbers(int step) {
  sw::step_env env;
  env.seed = 11;
  env.step = step;
  env.lr = 0.1;
  env.momentum = 0.9;
  env.max_norm = 1;
  return env;
}

template <class Step, class Place = place>
history train(int steps) {
  history h;
  using lowered = sw::runtime::lowered<Step>;
  for (int i = 0; i < lowered::parameter_count(); ++i)
    h.parameters.emplace_back(static_cast<std::size_t>(numel(lowered::parameter_spec(i))));
  Place::template launch<typename Step::mesh_type>([&](auto& rank) {
    sw::executor<Step, std::remove_reference_t<decltype(rank)>> ex(rank, Place::checks);
    ex.initialise(7);
    for (int s = 1; s <= steps; ++s) {
      feed(ex, s);
      ex.run(numbers(s));
      const double loss = ex.loss();
      if (rank.index() == 0) h.losses.push_back(loss);
    }
    for (int i = 0; i < ex.parameter_count(); ++i) ex.gather_parameter(i, h.parameters[static_cast<std::size_t>(i)]);
  });
  return h;
}

// The largest difference, against 1.
inline double difference(const history& a, const history& b) {
  double most = a.losses.size() == b.losses.size() && a.parameters.size() == b.parameters.size() ? 0 : INFINITY;
  const auto meet = [&](const std::vector<double>& x, const std::vector<double>& y) {
    if (x.size() != y.size()) most = INFINITY;
    for (std::size_t i = 0; i < x.size() && i < y.size(); ++i) {
      const double d = std::abs(x[i] - y[i]);
      most = d <= most ? most : d;
    }
  };
  if (most == 0) {
    meet(a.losses, b.losses);
    for (std::size_t i = 0; i < a.parameters.size(); ++i) meet(a.parameters[i], b.parameters[i]);
  }
  return most;
}

// The whole batch on one rank, without pieces: what every plan trains as.
template <int Steps>
const history& on_one_rank() {
  static const history h = train<step<replicated<1>, sw::mesh<dp<1>>, batch_axes<dp<1>>>>(Steps);
  return h;
}
// Steps of a plan, each of which gives what those give; their losses.
template <int Steps, class Plan, class Mesh, class Axes, class... Passes>
history as_on_one_rank() {
  const history got = train<step<Plan, Mesh, Axes, sw::pipeline<Passes...>>>(Steps);
  CHECK(got.losses[0] > 1);
  CHECK(difference(got, on_one_rank<Steps>()) <= 1e-12);
  return got;
}

}  // namespace test::accumulated
