// SPDX-License-Identifier: Apache-2.0
// A task that returns its loss and an accuracy as a tuple: which of them is the loss, and what the other is called, stands nowhere.
// expect: task: it returns something that is neither a tensor nor named tensors
// expect(text): given: counted_task, std::tuple<float[] (dp: partial<>), float[] (dp: partial<>)>
#include "small_step.hpp"

struct counted_task {
  using inputs = sw::inputs<four_rows>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto y = m(x);
#ifdef SHARDWISE_FAIL
    return std::tuple{sw::mean(y), sw::sum(y)};
#else
    return sw::outputs(sw::named<"loss">(sw::mean(y)), sw::named<"total">(sw::sum(y)));
#endif
  }
};
using step = sw::train_step<one_linear, counted_task, plan, mesh>;
static_assert(step::program.node_count > 0);
