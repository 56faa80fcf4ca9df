// SPDX-License-Identifier: Apache-2.0
// Learning rates that change from step to step, as values: env.lr = schedule.at(env.step - 1). n counts the updates made before, from 0,
// as PyTorch's schedulers count; a schedule has no state, so a run that goes on asks it for the same rates.
//
//   inline constexpr auto rates = sw::schedule_of<sw::warm_up(100, sw::cosine_schedule{.from = 3e-4, .to = 3e-5, .steps = 900})>;
//
// checks its numbers while compiling; a schedule whose numbers are known at run time alone checks them in at(), which throws
// std::invalid_argument. Rates are finite and at least 0, numbers of steps at least 1. Behind its last step a schedule stays where it is,
// save one_cycle_schedule, which throws std::out_of_range as PyTorch's does.
#pragma once

#include <concepts>
#include <cstdint>
#include <stdexcept>
#include <string>

#include <shardwise/graph/functions/option_number.hpp>
#include <shardwise/support/diagnose.hpp>
#include <shardwise/support/elementary.hpp>

namespace shardwise::inline v0_1 {

namespace detail {

constexpr bool is_rate(option_number n) { return n.value() >= 0 && n.value() - n.value() == 0; }
[[noreturn]] inline void refuse_schedule(const char* what, const char* wrong) {
  throw std::invalid_argument("shardwise: " + std::string(what) + ": " + wrong);
}
inline void check_count(std::int64_t n, const char* what) {
  if (n < 0)
    throw std::invalid_argument("shardwise: " + std::string(what) + ": asked for the rate after " + std::to_string(n) +
                                " updates; they count from 0: give env.step - 1");
}
// From 1 at 0 to 0 at 1, along half a cosine.
inline double falling(double share) { return 0.5 * (1 + elementary::cos(3.141592653589793 * share)); }
inline double share_of(std::int64_t n, std::int64_t steps) {
  return n < steps ? static_cast<double>(n) / static_cast<double>(steps) : 1.0;
}

}  // namespace detail

// What a schedule is: the rate after n updates, and what is wrong with its numbers, null if nothing is.
template <class S>
concept rate_schedule = requires(const S& s) {
  { s.at(std::int64_t{0}) } -> std::same_as<double>;
  { s.mistake() } -> std::same_as<const char*>;
};

struct constant_schedule {
  option_number rate;

  constexpr const char* mistake() const {
    return detail::is_rate(rate) ? nullptr : "the rate must be finite and at least 0; correct it";
  }
  double at(std::int64_t n) const {
    if (mistake()) detail::refuse_schedule("constant_schedule", mistake());
    detail::check_count(n, "constant_schedule");
    return rate.value();
  }
};

// From one rate to another in `steps` equal parts: torch.optim.lr_scheduler.LinearLR.
struct linear_schedule {
  option_number from, to;
  std::int64_t steps = 0;

  constexpr const char* mistake() const {
    return !detail::is_rate(from) || !detail::is_rate(to) ? "both rates must be finite and at least 0; correct them"
           : steps < 1                                    ? "there must be at least 1 step; say how many"
                                                          : nullptr;
  }
  double at(std::int64_t n) const {
    if (mistake()) detail::refuse_schedule("linear_schedule", mistake());
    detail::check_count(n, "linear_schedule");
    const double share = detail::share_of(n, steps);
    return share == 1 ? to.value() : from.value() + (to.value() - from.value()) * share;
  }
};

// Along half a cosine: CosineAnnealingLR until its T_max, where this one stays.
struct cosine_schedule {
  option_number from, to = 0.0;
  std::int64_t steps = 0;

  constexpr const char* mistake() const { return linear_schedule{from, to, steps}.mistake(); }
  double at(std::int64_t n) const {
    if (mistake()) detail::refuse_schedule("cosine_schedule", mistake());
    detail::check_count(n, "cosine_schedule");
    const double share = detail::share_of(n, steps);
    return share == 1 ? to.value() : to.value() + (from.value() - to.value()) * detail::falling(share);
  }
};

// Times `factor` after each `every` updates: StepLR.
struct step_schedule {
  option_number rate;
  std::int64_t every = 0;
  option_number factor = 0.1;

  constexpr const char* mistake() const {
    return !detail::is_rate(rate) || !detail::is_rate(factor) ? "rate and factor must be finite and at least 0; correct them"
           : every < 1                                        ? "`every` must be at least 1 update; say how many"
                                                              : nullptr;
  }
  double at(std::int64_t n) const {
    if (mistake()) detail::refuse_schedule("step_schedule", mistake());
    detail::check_count(n, "step_schedule");
    return rate.value() * elementary::pow(factor.value(), static_cast<double>(n / every));
  }
};

// OneCycleLR with two phases and cosines: from peak / start_divisor up to the peak in the first `rising` of all steps, then down to
// peak / start_divisor / end_divisor at the last one.
struct one_cycle_schedule {
  option_number peak;
  std::int64_t steps = 0;
  option_number rising = 0.3, start_divisor = 25.0, end_divisor = 1e4;

  constexpr const char* mistake() const {
    return !detail::is_rate(peak)                          ? "the peak must be finite and at least 0; correct it"
           : steps < 1                                     ? "there must be at least 1 step; say how many"
           : !(rising.value() >= 0 && rising.value() <= 1) ? "`rising` must be a share of all steps, from 0 to 1; correct it"
           : !(start_divisor.value() > 0 && detail::is_rate(start_divisor) && end_divisor.value() > 0 &&
               detail::is_rate(end_divisor))
               ? "both divisors must be finite and above 0; correct them"
               : nullptr;
  }
  double at(std::int64_t n) const {
    if (mistake()) detail::refuse_schedule("one_cycle_schedule", mistake());
    detail::check_count(n, "one_cycle_schedule");
    if (n >= steps)
      throw std::out_of_range("shardwise: one_cycle_schedule: asked for the rate after " + std::to_string(n) +
                              " updates of " + std::to_string(steps) + " in all; give it as many steps as the run has");
    const double t = static_cast<double>(n), top = rising.value() * static_cast<double>(steps) - 1,
                 last = static_cast<double>(steps) - 1;
    const double low = peak.value() / start_divisor.value(), end = low / end_divisor.value();
    if (t <= top) return top > 0 ? low + (peak.value() - low) * detail::falling(1 - t / top) : peak.value();
    return last > top ? end + (peak.value() - end) * detail::falling((t - top) / (last - top)) : end;
  }
};

// From `start_factor` times the first rate of `then` to that rate in `steps` equal parts, and `then` from there on: LinearLR before
// another one in SequentialLR. With start_factor 0 the first update has rate 0.
template <rate_schedule Then>
struct warm_up {
  std::int64_t steps;
  Then then;
  option_number start_factor;

  constexpr warm_up(std::int64_t count, Then behind, option_number start = 0.0)
      : steps(count), then(behind), start_factor(start) {}

  constexpr const char* mistake() const {
    return then.mistake()                   ? then.mistake()
           : steps < 1                      ? "there must be at least 1 step of warming up; say how many"
           : !detail::is_rate(start_factor) ? "start_factor must be finite and at least 0; correct it"
                                            : nullptr;
  }
  double at(std::int64_t n) const {
    if (mistake()) detail::refuse_schedule("warm_up", mistake());
    detail::check_count(n, "warm_up");
    if (n >= steps) return then.at(n - steps);
    const double factor = start_factor.value() + (1 - start_factor.value()) * detail::share_of(n, steps);
    return then.at(0) * factor;
  }
};
// A schedule whose numbers are constants: what is wrong with them does not compile.
template <rate_schedule auto S>
struct checked_schedule {
  static_assert(raise<(S.mistake() == nullptr ? problem::none : problem::schedule_numbers), checked_schedule>::ok);
  static constexpr auto value = S;
};
template <rate_schedule auto S>
inline constexpr auto schedule_of = checked_schedule<S>::value;

}  // namespace shardwise::inline v0_1
