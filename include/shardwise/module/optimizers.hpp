// SPDX-License-Identifier: Apache-2.0
// What a train step is told to update its parameters by: sgd, adam, adamw, and clip_norm around one of them.
#pragma once

#include <concepts>
#include <type_traits>

#include <shardwise/propagation/op.hpp>
#include <shardwise/support/diagnose.hpp>

namespace shardwise::inline v0_1 {

// Hyperparameters (learning rate, betas, ...) are values of the run: see step_env. The types decide states and graph.

// sgd's argument: whether there is momentum. A number is a mistake that sgd answers.
struct momentum_choice {
  bool on = false, is_number = false;
  template <std::same_as<bool> B>
  constexpr momentum_choice(B given) : on(given) {}
  template <class N>
    requires(std::is_arithmetic_v<N> && !std::same_as<N, bool>)
  constexpr momentum_choice(N) : is_number(true) {}
  constexpr momentum_choice(bool o, bool n) : on(o), is_number(n) {}  // as nvcc writes its value into host code
};

// plain: what is subtracted is the momentum; nesterov: the gradient and momentum's next share, torch.optim.SGD(nesterov=True).
enum class sgd_form { plain, nesterov };

template <momentum_choice Momentum = false, sgd_form Form = sgd_form::plain>
struct sgd {
  static_assert(raise<(Momentum.is_number                           ? problem::sgd_momentum
                       : Form == sgd_form::nesterov && !Momentum.on ? problem::sgd_nesterov
                                                                    : problem::none),
                      sgd>::ok);
  static constexpr op_code op = op_code::sgd;
  static constexpr int states = Momentum.on ? 1 : 0;
  static constexpr int flavour = Form == sgd_form::nesterov ? 2 : Momentum.on ? 1 : 0;
  static constexpr bool clips = false;
  static constexpr bool matrices_only = false;
};

// torch.optim.Adam: bias-corrected moments; weight decay, if any, is added to the gradient.
template <class = void>
struct adam {
  static constexpr op_code op = op_code::adam;
  static constexpr int states = 2;  // first_moment, second_moment
  static constexpr int flavour = 0;
  static constexpr bool clips = false;
  static constexpr bool matrices_only = false;
};

// torch.optim.AdamW: decoupled weight decay, here on parameters of rank 2 and more if MatricesOnly.
template <bool MatricesOnly = false>
struct adamw {
  static constexpr op_code op = op_code::adam;
  static constexpr int states = 2;  // first_moment, second_moment
  static constexpr int flavour = 1;
  static constexpr bool clips = false;
  static constexpr bool matrices_only = MatricesOnly;
};

// Scales all gradients by min(1, max_norm / (global 2-norm + 1e-6)) before Optimizer sees them.
template <class Optimizer>
struct clip_norm : Optimizer {
  static constexpr bool clips = true;
};

}  // namespace shardwise::inline v0_1
