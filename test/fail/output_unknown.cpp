// SPDX-License-Identifier: Apache-2.0
// An output read by a name that the task does not give.
// expect: output: the program has no output of this name
// expect(text): asked for: "totals"; outputs: "loss", "total"
#include <shardwise/shardwise.hpp>

#include "small_step.hpp"

struct counted_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
    return sw::outputs(sw::named<"loss">(sw::mean(y)), sw::named<"total">(sw::sum(y)));
  }
};
using step = sw::train_step<one_linear, counted_task, plan, mesh>;

float total(const sw::executor<step>& ex) {
#ifdef SHARDWISE_FAIL
  return ex.output<"totals">().item();
#else
  return ex.output<"total">().item();
#endif
}
