// SPDX-License-Identifier: Apache-2.0
// ready: what a run needs before it begins: the step's numbers that its optimizer reads, and values in inputs and parameters.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <string_view>

#include <shardwise/graph/graph.hpp>
#include <shardwise/operations/infer.hpp>
#include <shardwise/runtime/program/call.hpp>
#include <shardwise/runtime/program/numbers.hpp>
#include <shardwise/support/dynamic_array.hpp>

namespace shardwise::inline v0_1::runtime {

// Which of step_env's numbers a program reads.
struct env_needs {
  bool updates = false;  // an optimizer's: lr, eps, weight_decay
  bool betas = false;    // Adam's and Lion's
  bool eps = false;      // Adam's
  bool counts = false;   // the run's number of the step
  bool momentum = false;
  bool dampens = false;
  bool clips = false;         // by the norm,
  bool clips_values = false;  // by value
  bool draws = false;         // random numbers
};

template <class Graph>
constexpr env_needs env_needs_of(const Graph& g) {
  env_needs r;
  const int count = g.node_count;
  for (int i = 0; i < count; ++i) {
    const node& n = g.nodes[i];
    if (is_optimizer(n.op)) {
      const bool sgd = is_sgd(n.op);
      r.updates = true;
      const bool muon = n.op == op_code::muon || n.op == op_code::muon_direction;
      r.betas = r.betas || !(sgd || muon);
      r.eps = r.eps || is_adam(n.op) || is_adam_term(n.op);
      r.counts = r.counts || reads_step_number(n.op, n.a);
      r.momentum = r.momentum || muon || (sgd && attributes_of<sgd_attributes>(n.a).momentum != 0);
      r.dampens = r.dampens || (update_options_of(n.a) & dampens) != 0;
      r.clips_values = r.clips_values || (update_options_of(n.a) & clips_values) != 0;
    }
    r.clips = r.clips || n.op == op_code::clip_factor ||
              (n.op == op_code::adjust_scale && attributes_of<adjust_scale_attributes>(n.a).clips != 0);
    r.draws = r.draws || rules::is_random(n.op);
  }
  return r;
}

namespace detail {

[[noreturn]] __attribute__((noinline)) inline void refuse_number(const char* field, double value, const char* why,
                                                                 std::string_view group = {}) {
  const std::string whose = group.empty() ? std::string("env.") : "env.group<\"" + std::string(group) + "\">().";
  char held[40];
  std::snprintf(held, sizeof held, "%.9g", value);
  throw std::invalid_argument("shardwise: run: " + whose + field + " is " + (value == value ? held : "not a number") + why);
}

[[noreturn]] __attribute__((noinline)) inline void refuse_env(const env_needs& n, const step_env& e,
                                                              std::string_view group) {
  const auto refuse = [&](const char* field, double value, const char* why) { refuse_number(field, value, why, group); };
  const auto good = [](double v) { return v >= 0 && v - v == 0; };
  if (!good(e.lr))
    refuse("lr", e.lr,
           e.lr == e.lr ? "; a learning rate is finite and at least 0"
                        : ", as it is while nobody has set it; the program updates parameters: set the "
                          "learning rate before every run, as in env.lr = 1e-3 (0 leaves them as they are)");
  if (n.momentum && !good(e.momentum))
    refuse("momentum", e.momentum,
           e.momentum == e.momentum
               ? "; a momentum is finite and at least 0"
               : ", as it is while nobody has set it; the optimizer is sgd<true> or muon: set it, as in "
                 "env.momentum = 0.9, or take sgd<> without momentum");
  if (n.dampens && !(e.dampening - e.dampening == 0))
    refuse("dampening", e.dampening,
           e.dampening == e.dampening
               ? "; a dampening is finite"
               : ", as it is while nobody has set it; the optimizer is sgd<true, sgd_form::dampened>: set it, "
                 "as in env.dampening = 0.1, or take sgd<true>");
  const char* const betas =
      n.eps ? "; Adam's betas are at least 0 and less than 1" : "; Lion's betas are at least 0 and less than 1";
  if (n.betas && !(e.beta1 >= 0 && e.beta1 < 1)) refuse("beta1", e.beta1, betas);
  if (n.betas && !(e.beta2 >= 0 && e.beta2 < 1)) refuse("beta2", e.beta2, betas);
  if (n.eps && !good(e.eps)) refuse("eps", e.eps, "; Adam's eps is finite and at least 0");
  if (!good(e.weight_decay)) refuse("weight_decay", e.weight_decay, "; a weight decay is finite and at least 0");
  if (n.clips && !(e.max_norm > 0))
    refuse("max_norm", e.max_norm,
           e.max_norm == e.max_norm ? "; clip_norm scales gradients to that norm, and they would all be 0: give a norm "
                                      "above 0, or take the optimizer without clip_norm"
                                    : ", as it is while nobody has set it; the optimizer is a clip_norm: set the "
                                      "largest norm that gradients may have, as in env.max_norm = 1");
  if (n.clips_values && !(e.clip_value > 0))
    refuse("clip_value", e.clip_value,
           e.clip_value == e.clip_value
               ? "; clip_value leaves elements of gradients that are at most that far from 0, and none would be "
                 "left: give a value above 0, or take the optimizer without clip_value"
               : ", as it is while nobody has set it; the optimizer is a clip_value: set how far from 0 "
                 "elements of gradients may be, as in env.clip_value = 0.5");
  throw std::invalid_argument("shardwise: run: env.step is " + std::to_string(e.step) +
                              (n.counts && n.eps ? "; Adam divides by 1 - beta^step, so the first step is number 1"
                               : n.counts
                                   ? "; a dampened momentum begins with the whole gradient, so the first step is number 1"
                                   : "; the step draws random numbers by its number, so the first step is number 1") +
                              ": set env.step to 1, 2, 3, ... from run to run");
}

}  // namespace detail

// Throws std::invalid_argument, naming the field (and the group of parameters whose number it is), if a number that a program reads is unset or none that an optimizer can
// work with (PyTorch's bounds). Price: a few comparisons.
inline void check_env(const env_needs& n, const step_env& e, std::string_view group = {}) {
  if (!n.updates) return;
  constexpr double most = 1.7976931348623157e308;
  const bool rates = e.lr >= 0 && e.lr <= most && e.weight_decay >= 0 && e.weight_decay <= most;
  const bool moments =
      !n.betas || (e.beta1 >= 0 && e.beta1 < 1 && e.beta2 >= 0 && e.beta2 < 1 && (!n.eps || (e.eps >= 0 && e.eps <= most)));
  const bool rest = (!n.momentum || (e.momentum >= 0 && e.momentum <= most)) && (!n.clips || e.max_norm > 0) &&
                    (!n.dampens || e.dampening - e.dampening == 0) && (!n.clips_values || e.clip_value > 0);
  const bool counted = e.step >= 1 || !(n.counts || n.draws);
  if (!(rates && moments && rest && counted)) [[unlikely]]
    detail::refuse_env(n, e, group);
}

// The same of every group's numbers.
template <class Names>
void check_env(const env_needs& n, const run_numbers<Names>& e) {
  check_env(n, e.run());
  for (int k = 1; k <= Names::count; ++k) check_env(n, e.of[k], Names::name(k));
}

// Throws std::invalid_argument if a number that updates read is another one than in the call before: updates that moved from
// that call into this one would take it.
inline void check_unchanged(const env_needs& n, const step_env& now, const step_env& before, std::string_view group = {}) {
  const struct {
    const char* field;
    bool read;
    double now, before;
  } numbers[] = {
      {"lr", n.updates, static_cast<double>(now.lr), static_cast<double>(before.lr)},
      {"weight_decay", n.updates, static_cast<double>(now.weight_decay), static_cast<double>(before.weight_decay)},
      {"momentum", n.momentum, static_cast<double>(now.momentum), static_cast<double>(before.momentum)},
      {"beta1", n.betas, static_cast<double>(now.beta1), static_cast<double>(before.beta1)},
      {"beta2", n.betas, static_cast<double>(now.beta2), static_cast<double>(before.beta2)},
      {"eps", n.eps, static_cast<double>(now.eps), static_cast<double>(before.eps)},
      {"max_norm", n.clips, static_cast<double>(now.max_norm), static_cast<double>(before.max_norm)},
      {"clip_value", n.clips_values, static_cast<double>(now.clip_value), static_cast<double>(before.clip_value)},
      {"dampening", n.dampens, static_cast<double>(now.dampening), static_cast<double>(before.dampening)}};
  for (const auto& x : numbers) {
    if (!x.read || x.now == x.before) continue;
    char was[120];
    std::snprintf(was, sizeof was,
                  " and was %.9g in the call before, whose moved updates run in this call and would take it", x.before);
    detail::refuse_number(
        x.field, x.now, (std::string(was) + "; keep it until the last call, or run the step without moves").c_str(), group);
  }
}
template <class Names>
void check_unchanged(const env_needs& n, const run_numbers<Names>& now, const run_numbers<Names>& before) {
  check_unchanged(n, now.run(), before.run());
  for (int k = 1; k <= Names::count; ++k) check_unchanged(n, now.of[k], before.of[k], Names::name(k));
}

// Which inputs and parameters (and behind them buffers) of a program have been given values: executors over one arena share it.
class given_values {
 public:
  given_values(int inputs, int parameters)
      : given_(static_cast<std::size_t>(inputs + parameters), 0), inputs_(inputs), missing_(inputs + parameters) {}

  bool complete() const { return missing_ == 0; }
  void input(int index) { give(index); }
  void parameter(int index) { give(inputs_ + index); }
  bool has_input(int index) const { return given_[static_cast<std::size_t>(index)] != 0; }
  bool has_parameter(int index) const { return given_[static_cast<std::size_t>(inputs_ + index)] != 0; }
  // Its block has become another one.
  void take_input(int index) {
    missing_ += given_[static_cast<std::size_t>(index)] != 0 ? 1 : 0;
    given_[static_cast<std::size_t>(index)] = 0;
  }

 private:
  void give(int at) {
    char& g = given_[static_cast<std::size_t>(at)];
    missing_ -= g != 0 ? 0 : 1;
    g = 1;
  }

  dynamic_array<char> given_;
  int inputs_, missing_;
};

}  // namespace shardwise::inline v0_1::runtime
