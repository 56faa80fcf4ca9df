// SPDX-License-Identifier: Apache-2.0
// Compares a training run on a mesh with the same run on one rank, which is always a thread: on GPUs, too, the host is the
// reference.
#pragma once

#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <gpt.hpp>

namespace test::gpt {

inline constexpr int equivalence_steps = 20;

template <class T>
inline constexpr double loss_tolerance = !std::is_same_v<T, double>          ? 1e-5
                                         : std::is_same_v<place, on_threads> ? 1e-12
                                                                             : 1e-10;

// Parameters, which are of order 1: Adam turns the rounding of a small gradient into a larger step.
template <class T>
inline constexpr double parameter_tolerance = std::is_same_v<T, double> ? 1e-10 : 1e-3;

template <class T, class Sizes>
const history<T>& one_rank() {
  static const history<T> h = train<step<T, 1, 1, tensor_parallel, Sizes, on_threads>, on_threads>(equivalence_steps);
  return h;
}

// Losses of a D by N mesh: equal on all its ranks, equal to those of one rank up to rounding.
template <class T, int D, int N, template <class, class> class Plan = tensor_parallel, class Sizes = sizes>
void check_equivalence() {
  if (!place::has(D * N)) return;
  using program = step<T, D, N, Plan, Sizes>;
  const history<T>& ref = one_rank<T, Sizes>();
  const history<T> h = train<program>(equivalence_steps);
  double worst = 0;
  for (std::size_t s = 0; s < equivalence_steps; ++s) {
    const double want = static_cast<double>(ref.losses[0][s]), got = static_cast<double>(h.losses[0][s]);
    const double error = std::abs(got - want) / std::abs(want);
    worst = error <= worst ? worst : error;
  }
  bool ranks_agree = true;
  for (const auto& losses : h.losses) ranks_agree = ranks_agree && losses == h.losses[0];
  double drift = 0;  // parameters, against 1
  for (std::size_t i = 0; i < h.parameters.size(); ++i)
    for (std::size_t k = 0; k < h.parameters[i].size(); ++k)
      drift = std::max(drift, static_cast<double>(std::abs(h.parameters[i][k] - ref.parameters[i][k])));
  MESSAGE("dp " << D << " x tp " << N << ": losses " << worst << ", parameters " << drift);
  CHECK(ranks_agree);
  CHECK(worst <= loss_tolerance<T>);
  CHECK(drift <= parameter_tolerance<T>);
  CHECK(static_cast<double>(ref.losses[0][0]) > 3);
}

template <class Step>
void check_reproducible(int steps) {
  const auto a = train<Step>(steps), b = train<Step>(steps);
  CHECK(a.losses == b.losses);
  CHECK(a.parameters == b.parameters);
}

}  // namespace test::gpt
