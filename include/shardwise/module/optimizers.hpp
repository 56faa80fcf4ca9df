// SPDX-License-Identifier: Apache-2.0
// What a train step is told to update its parameters by: sgd, adam, adamw, lion, and around one of them amsgrad, maximize, clip_value,
// clip_norm, report_norm.
#pragma once

#include <concepts>
#include <cstdint>
#include <type_traits>

#include <shardwise/propagation/attributes.hpp>
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

// plain: what is subtracted is the momentum; nesterov: the gradient and momentum's next share, torch.optim.SGD(nesterov=True);
// dampened: the gradient's share of the momentum is 1 - step_env::dampening, but in step 1 the whole of it, as torch.optim.SGD has it.
enum class sgd_form { plain = 0, nesterov = 1, dampened = 2 };
constexpr sgd_form operator|(sgd_form a, sgd_form b) {
  return static_cast<sgd_form>(static_cast<int>(a) | static_cast<int>(b));
}

namespace detail {

constexpr bool has_form(sgd_form all, sgd_form one) { return (static_cast<int>(all) & static_cast<int>(one)) != 0; }
constexpr problem problem_of(momentum_choice momentum, sgd_form form) {
  const bool nesterov = has_form(form, sgd_form::nesterov), dampened = has_form(form, sgd_form::dampened);
  return momentum.is_number         ? problem::sgd_momentum
         : nesterov && dampened     ? problem::sgd_nesterov_dampened
         : nesterov && !momentum.on ? problem::sgd_nesterov
         : dampened && !momentum.on ? problem::sgd_dampening
                                    : problem::none;
}

// The operation that does the same with options.
constexpr op_code with_options(op_code op) {
  return op == op_code::sgd ? op_code::sgd_with : op == op_code::adam ? op_code::adam_with : op;
}

}  // namespace detail

template <momentum_choice Momentum = false, sgd_form Form = sgd_form::plain>
struct sgd {
  static_assert(raise<detail::problem_of(Momentum, Form), sgd>::ok);
  static constexpr bool dampened = detail::has_form(Form, sgd_form::dampened);
  static constexpr op_code op = dampened ? op_code::sgd_with : op_code::sgd;
  static constexpr int states = Momentum.on ? 1 : 0;
  static constexpr int flavour = detail::has_form(Form, sgd_form::nesterov) ? 2 : Momentum.on ? 1 : 0;
  static constexpr std::int64_t options = dampened ? std::int64_t{dampens} : 0;
  static constexpr bool clips = false;
  static constexpr bool matrices_only = false;
};

// torch.optim.Adam: bias-corrected moments; weight decay, if any, is added to the gradient.
template <class = void>
struct adam {
  static constexpr op_code op = op_code::adam;
  static constexpr int states = 2;  // first_moment, second_moment
  static constexpr int flavour = 0;
  static constexpr std::int64_t options = 0;
  static constexpr bool clips = false;
  static constexpr bool matrices_only = false;
};

// torch.optim.AdamW: decoupled weight decay, here on parameters of rank 2 and more if MatricesOnly.
template <bool MatricesOnly = false>
struct adamw {
  static constexpr op_code op = op_code::adam;
  static constexpr int states = 2;  // first_moment, second_moment
  static constexpr int flavour = 1;
  static constexpr std::int64_t options = 0;
  static constexpr bool clips = false;
  static constexpr bool matrices_only = MatricesOnly;
};

// Lion (Chen et al. 2023, "Symbolic Discovery of Optimization Algorithms", algorithm 2): the sign of beta1 m + (1 - beta1) g, with
// decoupled weight decay, here on parameters of rank 2 and more if MatricesOnly; then m = beta2 m + (1 - beta2) g. The paper's betas are
// 0.9 and 0.99, and step_env's beta2 is Adam's 0.999: set it. The step of a gradient that is no number is none either.
template <bool MatricesOnly = false>
struct lion {
  static constexpr op_code op = op_code::lion;
  static constexpr int states = 1;  // first_moment
  static constexpr int flavour = 0;
  static constexpr std::int64_t options = 0;
  static constexpr bool clips = false;
  static constexpr bool matrices_only = MatricesOnly;
};

// torch.optim.Adam(amsgrad=True), AdamW's too: divides by the largest second moment so far, one state more.
template <class Optimizer>
struct amsgrad : Optimizer {
  static_assert(raise<(is_adam(Optimizer::op) ? problem::none : problem::amsgrad_moments), Optimizer>::ok);
  static constexpr op_code op = detail::with_options(Optimizer::op);
  static constexpr int states = 3;  // first_moment, second_moment, largest_second_moment
  static constexpr std::int64_t options = Optimizer::options | keeps_largest;
};

// torch.optim's maximize=True: goes up the gradient.
template <class Optimizer>
struct maximize : Optimizer {
  static constexpr op_code op = detail::with_options(Optimizer::op);
  static constexpr std::int64_t options = Optimizer::options | maximises;
};

// torch.nn.utils.clip_grad_value_: each element of a gradient is brought into [-clip_value, clip_value] before Optimizer sees it, behind
// loss scales and clip_norm. A NaN stays one.
template <class Optimizer>
struct clip_value : Optimizer {
  static_assert(raise<(Optimizer::clips ? problem::clip_value_order : problem::none), Optimizer>::ok);
  static constexpr op_code op = detail::with_options(Optimizer::op);
  static constexpr std::int64_t options = Optimizer::options | clips_values;
};

// Scales all gradients by min(1, max_norm / (global 2-norm + 1e-6)) before Optimizer sees them.
template <class Optimizer>
struct clip_norm : Optimizer {
  static constexpr bool clips = true;
};

// Keeps the global 2-norm of all gradients, for executor::gradient_norm(): what torch.nn.utils.clip_grad_norm_ returns. It is that
// before clip_norm and clip_value, without loss scales, over all ranks. Updates are the same bits. Price: of an optimizer that clips the
// norm one number; of another what clipping costs, a reading of all gradients and a sum over the ranks.
template <class Optimizer>
struct report_norm : Optimizer {
  using shardwise_reports_norm = void;
};
namespace detail {
template <class Optimizer>
concept reports_norm = requires { typename Optimizer::shardwise_reports_norm; };
}  // namespace detail

}  // namespace shardwise::inline v0_1
