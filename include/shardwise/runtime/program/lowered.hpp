// SPDX-License-Identifier: Apache-2.0
// lowered: a lowered_program that knows its program's type: what of it is a constant.
#pragma once

#include <cstddef>

#include <shardwise/runtime/program/leaves.hpp>
#include <shardwise/runtime/program/lowered_program.hpp>

namespace shardwise::inline v0_1::runtime {

template <class Step>
class lowered : public program_leaves<Step>, public lowered_program {
 public:
  using leaves = program_leaves<Step>;
  using typename leaves::element;
  using typename leaves::source;
  using leaves::image, leaves::plan, leaves::find;
  using numbers = run_numbers<typename program_traits<Step>::param_groups>;  // of one run

  // Whether parameters and buffers are another executor's (with_parameters_of).
  static constexpr bool borrows = requires { typename source::parameters_of; };
  // Whether the program keeps gradients from run to run (keep_gradients).
  static constexpr bool keeps = keeps_gradients(source::program);

 protected:
  lowered() : lowered_program(tables_of<Step>::get(), borrows) {}

  numbers of_batch(numbers env, std::int64_t batch) const {
    for (step_env& e : env.of) lowered_program::number_batch(e, batch);
    return env;
  }
  // Throws if a run would read what nobody has set. Price: comparisons, no allocation.
  void check_ready(const numbers& env) const {
    check_env(needs, env);
    lowered_program::check_given();
  }

 private:
  static constexpr env_needs needs = env_needs_of(source::program);
};

}  // namespace shardwise::inline v0_1::runtime
