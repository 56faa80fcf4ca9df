// SPDX-License-Identifier: Apache-2.0
// env_of: the numbers of one run of a program whose optimizer updates groups of parameters by numbers of their own.
#pragma once

#include <bit>
#include <cstdint>

#include <shardwise/pass/framework/program_traits.hpp>
#include <shardwise/runtime/program/call.hpp>

namespace shardwise::inline v0_1 {

// Of one group of parameters: what is not set is the run's own.
struct group_numbers {
  double lr = runtime::unset;
  double beta1 = runtime::unset, beta2 = runtime::unset, eps = runtime::unset;
  double momentum = runtime::unset, dampening = runtime::unset;
  double weight_decay = runtime::unset;
};

// A step_env with numbers for groups: it is none, so that nothing takes it for one and leaves the groups out.
template <class Names>
class grouped_env : private runtime::step_env {
 public:
  using names = Names;
  using runtime::step_env::seed, runtime::step_env::step, runtime::step_env::lr;
  using runtime::step_env::beta1, runtime::step_env::beta2, runtime::step_env::eps;
  using runtime::step_env::momentum, runtime::step_env::weight_decay, runtime::step_env::max_norm, runtime::step_env::random;
  using runtime::step_env::clip_value, runtime::step_env::dampening;

  // The numbers of the group that a plan calls Name; a name that is none of its groups' does not compile.
  template <fixed_string Name>
  constexpr group_numbers& group() {
    return of_[Names::template number<Name>()];
  }

  // What updates of group `number` read: 0 the run's own.
  constexpr runtime::step_env numbers_of(int number) const {
    runtime::step_env e = *this;
    const group_numbers& g = of_[number];
    set(e.lr, g.lr);
    set(e.beta1, g.beta1);
    set(e.beta2, g.beta2);
    set(e.eps, g.eps);
    set(e.momentum, g.momentum);
    set(e.dampening, g.dampening);
    set(e.weight_decay, g.weight_decay);
    return e;
  }

 private:
  // Unset is unset's own bits: a NaN that was computed is a number that somebody has set, and is refused.
  static constexpr void set(double& to, double given) {
    if (std::bit_cast<std::uint64_t>(given) != std::bit_cast<std::uint64_t>(runtime::unset)) to = given;
  }
  group_numbers of_[Names::count + 1]{};  // [0]: nobody's
};

// The numbers of one run of Step, as step_env, and of its groups: env_of<step> env; env.group<"no_decay">().weight_decay = 0.
// Step may be an eager_optimizer. A plain step_env gives all groups the run's own numbers.
template <class Step>
using env_of = grouped_env<typename program_traits<Step>::param_groups>;

namespace runtime {

// What each update of a run reads, by the number of its group.
template <class Names>
struct run_numbers {
  step_env of[Names::count + 1];

  constexpr run_numbers() = default;
  constexpr run_numbers(const step_env& env) {
    for (step_env& e : of) e = env;
  }
  template <class Given>
  constexpr run_numbers(const grouped_env<Given>& env) {
    static_assert(raise<(Given::template all_in<Names> ? problem::none : problem::param_group_other), Given, Names>::ok);
    of[0] = env.numbers_of(0);
    for (int k = 1; k <= Names::count; ++k) of[k] = env.numbers_of(Given::find(Names::name(k)));
  }

  constexpr const step_env& run() const { return of[0]; }
  constexpr const step_env& read_by([[maybe_unused]] op_code op, [[maybe_unused]] const op_attr& a) const {
    if constexpr (Names::count == 0) return of[0];
    else return of[optimizer_group(op, a)];
  }
};

}  // namespace runtime

}  // namespace shardwise::inline v0_1
