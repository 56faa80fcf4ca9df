// SPDX-License-Identifier: Apache-2.0
// What the programs that time steps with slowed collectives share: their ranks, task, input, times, and options.
#pragma once

#include <shardwise/io/trace_export.hpp>
#include <shardwise/shardwise.hpp>

#include <algorithm>
#include <chrono>
#include <string>
#include <vector>

namespace slowed_bench {

namespace sw = shardwise;

constexpr double limit = 1.15;  // of the larger of computation and communication

template <int N>
struct dp : sw::axis<N> {};
template <int N>
using mesh = sw::mesh<dp<N>>;

// Rows of a rank.
template <int N, int Rows, int Width>
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<N * Rows, Width>, sw::on<dp<N>, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x) - x;
    return sw::sum(y * y);  // gradients whose squares are normal numbers: others take many times as long
  }
};

struct options {
  int ranks = 2, rounds = 15;
  bool json = false, check = false;
  std::string trace;
};

double seconds_of(auto&& f) {
  const auto begin = std::chrono::steady_clock::now();
  f();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}
inline double median(std::vector<double> v) {
  std::sort(v.begin(), v.end());
  return v[v.size() / 2];
}
inline double best(const std::vector<double>& v) { return *std::min_element(v.begin(), v.end()); }
// Of a step to what `of` gives for the same round: what slows the machine for a while slows all.
template <class F>
double ratio(const std::vector<double>& steps, F&& of) {
  std::vector<double> r;
  for (std::size_t i = 0; i < steps.size(); ++i) r.push_back(steps[i] / of(i));
  return median(r);
}

inline std::vector<float> input_of(int size) {
  std::vector<float> x(static_cast<std::size_t>(size));
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 17) / 17 - 0.5F;
  return x;
}
inline sw::step_env environment(int step) {
  sw::step_env env;
  env.lr = 1e-3;
  env.step = step;
  return env;
}

// A measurement of several programs, by all ranks of a mesh: M has on_rank(rank, o) and `lines`, a timeline a rank if one is asked for.
template <class Mesh, class M>
void measure_on(M& m, int programs, const options& o) {
  if (!o.trace.empty()) m.lines.assign(Mesh::size, sw::timeline(programs));
  sw::launch<Mesh>([&](auto& rank) { m.on_rank(rank, o); });
  if (!o.trace.empty()) sw::write_chrome_trace(o.trace, m.lines);
}

}  // namespace slowed_bench
