// SPDX-License-Identifier: Apache-2.0
// Numbers of a run's groups of parameters: what a group does not set is the run's, whatever the order in which it is set.
#include <bit>
#include <limits>

#include <shardwise/runtime/program/numbers.hpp>

namespace {

namespace sw = shardwise;

using names = sw::group_names<"no_decay", "head">;
constexpr bool same(const sw::runtime::step_env& a, const sw::runtime::step_env& b) {
  const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };  // what is unset is no number
  using env = sw::runtime::step_env;
  bool all = a.seed == b.seed && a.step == b.step;
  for (const auto number : {&env::lr, &env::beta1, &env::beta2, &env::eps, &env::momentum, &env::dampening,
                            &env::weight_decay, &env::max_norm, &env::clip_value})
    all = all && bits(a.*number) == bits(b.*number);
  return all;
}
constexpr sw::runtime::step_env run_alone = [] {
  sw::runtime::step_env e;
  e.seed = 7;
  e.step = 3;
  e.lr = 0.5;
  e.momentum = 0.75;
  e.dampening = 0.125;
  e.weight_decay = 0.25;
  return e;
}();
constexpr sw::grouped_env<names> numbers = [] {
  sw::grouped_env<names> e;
  e.group<"no_decay">().weight_decay = 0;  // before the run's
  e.seed = 7;
  e.step = 3;
  e.lr = 0.5;
  e.momentum = 0.75;
  e.dampening = 0.125;
  e.weight_decay = 0.25;
  sw::group_numbers& head = e.group<"head">();
  head.lr = 2;
  head.beta1 = 0.5;
  head.beta2 = 0.625;
  head.eps = 1;
  head.momentum = 0.375;
  head.dampening = 0;
  return e;
}();
static_assert(same(numbers.numbers_of(0), run_alone));
static_assert([] {
  sw::runtime::step_env e = run_alone;
  e.weight_decay = 0;
  return same(numbers.numbers_of(1), e);
}());
static_assert([] {
  sw::runtime::step_env e = run_alone;
  e.lr = 2;
  e.beta1 = 0.5;
  e.beta2 = 0.625;
  e.eps = 1;
  e.momentum = 0.375;
  e.dampening = 0;
  return same(numbers.numbers_of(2), e) && numbers.numbers_of(2).weight_decay == 0.25;
}());
// A NaN that was computed, as infinity less infinity is, is set, and so refused where numbers are; only what nobody has set is the run's.
static_assert([] {
  sw::grouped_env<names> e;
  e.lr = 0.5;
  e.group<"head">().lr = -std::numeric_limits<double>::quiet_NaN();
  e.group<"no_decay">().lr = std::numeric_limits<double>::quiet_NaN();
  return e.numbers_of(2).lr != e.numbers_of(2).lr && e.numbers_of(1).lr != e.numbers_of(1).lr;
}());
// Groups of another program's order go by their names.
static_assert([] {
  const sw::runtime::run_numbers<sw::group_names<"head", "no_decay">> other{numbers};
  return same(other.run(), run_alone) && other.of[1].lr == 2 && other.of[2].weight_decay == 0 && other.of[2].lr == 0.5;
}());

}  // namespace
