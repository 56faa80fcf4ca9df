// SPDX-License-Identifier: Apache-2.0
// Two outputs of one name: a metric read by it would be one of them.
// expect: task: two of its outputs have one name
// expect(text): given: counted_task, named_outputs<"loss", "loss">
#include "small_step.hpp"

struct counted_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
#ifdef SHARDWISE_FAIL
    return sw::outputs(sw::named<"loss">(sw::mean(y)), sw::named<"loss">(sw::sum(y)));
#else
    return sw::outputs(sw::named<"loss">(sw::mean(y)), sw::named<"total">(sw::sum(y)));
#endif
  }
};
using step = sw::train_step<one_linear, counted_task, plan, mesh>;
static_assert(step::program.node_count > 0);
