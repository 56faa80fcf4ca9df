// SPDX-License-Identifier: Apache-2.0
// A small step and what the norm of its gradients is, in plain loops; a step that reports it beside one that does not.
#pragma once

#include <doctest/doctest.h>

#include <cmath>
#include <type_traits>
#include <vector>

#include <place.hpp>

namespace gradient_norms {

namespace sw = shardwise;

template <int N>
struct dp : sw::axis<N> {};

constexpr int rows = 12, in = 3, out = 5;  // shards of 5 are uneven over 2, 3 and 4 ranks
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<in, out>, line));
  constexpr auto forward(const auto& x) const { return line(x); }
};
template <class T, int N>
struct fit {
  using inputs = sw::inputs<sw::input_tensor<T, sw::shape<rows, in>, sw::on<dp<N>, sw::shard<0>>>,
                            sw::input_tensor<T, sw::shape<rows, out>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& t) const {
    const auto apart = sw::cast<T>(model(x)) - t;
    return sw::mean(apart * apart);
  }
};
template <class T, int N, class Optimizer, class Pipeline, class... E>
using step = sw::train_step<net, fit<T, N>, sw::plan<E...>, sw::mesh<dp<N>>, Optimizer, Pipeline, T, test::place::backend>;

template <class T>
std::vector<T> numbers(int count, int s, double seed) {
  std::vector<T> v;
  for (int i = 0; i < count; ++i) v.push_back(static_cast<T>(2 * std::sin(1.7 * i + seed + 0.9 * s)));
  return v;
}
inline sw::step_env env_at(int s, double max_norm) {
  sw::step_env env;
  env.step = s;
  env.lr = 0.02;
  env.max_norm = max_norm;
  env.clip_value = 0.01;
  env.momentum = 0.9;
  return env;
}

// The norm of the gradients of the mean of (x W^T + b - t)^2, in plain loops.
inline double norm_of(const std::vector<double>& w, const std::vector<double>& bias, int s) {
  const auto x = numbers<double>(rows * in, s, 0), t = numbers<double>(rows * out, s, 5);
  std::vector<double> gw(out * in), gb(out);
  for (int r = 0; r < rows; ++r)
    for (int o = 0; o < out; ++o) {
      double y = bias[static_cast<std::size_t>(o)];
      for (int i = 0; i < in; ++i) y += x[static_cast<std::size_t>(r * in + i)] * w[static_cast<std::size_t>(o * in + i)];
      const double d = 2 * (y - t[static_cast<std::size_t>(r * out + o)]) / (rows * out);
      gb[static_cast<std::size_t>(o)] += d;
      for (int i = 0; i < in; ++i) gw[static_cast<std::size_t>(o * in + i)] += d * x[static_cast<std::size_t>(r * in + i)];
    }
  double sum = 0;
  for (const double g : gw) sum += g * g;
  for (const double g : gb) sum += g * g;
  return std::sqrt(sum);
}

template <class T>
std::vector<double> wide(const std::vector<T>& v) {
  return {v.begin(), v.end()};
}

// Step and the same without a report, side by side: equal parameters, and the norm of the loops.
template <class Step, class Without>
void check_norm(double tolerance, double max_norm) {
  using T = typename Step::element;
  CAPTURE(Step::mesh_type::size);
  test::place::launch<typename Step::mesh_type>([&](auto& rank) {
    using rank_type = std::remove_reference_t<decltype(rank)>;
    sw::executor<Step, rank_type> run(rank, test::place::checks);
    sw::executor<Without, rank_type> plain(rank, test::place::checks);
    run.initialise(7);
    plain.initialise(7);
    CHECK(run.gradient_norm() == 0);
    for (int s = 1; s <= 4; ++s) {
      const double expected = norm_of(wide(run.full_parameter("line.weight")), wide(run.full_parameter("line.bias")), s);
      const auto give = [&](auto& to) {
        to.set_input(0, numbers<T>(rows * in, s, 0));
        to.set_input(1, numbers<T>(rows * out, s, 5));
        to.run(env_at(s, max_norm));
      };
      give(run);
      give(plain);
      CHECK(std::fabs(run.gradient_norm() - expected) <= tolerance * expected);
      CHECK(expected > 0.01);
    }
    for (const char* name : {"line.weight", "line.bias"}) CHECK(run.full_parameter(name) == plain.full_parameter(name));
    run.reset_states();
    CHECK(run.gradient_norm() == 0);
  });
}

}  // namespace gradient_norms
