// SPDX-License-Identifier: Apache-2.0
// Two modules deep, positions of the largest elements along a dim that ranks share: what is made of the results says nothing more.
// expect: max, min: the dim is sharded, or the operand partial
// located: layers.0.mlp custom

#include <shardwise/graph/functions/extremes.hpp>

#include "nested_step.hpp"

struct largest {
  constexpr auto operator()(const auto& h, const auto&) const {
#ifdef SHARDWISE_FAIL
    const auto [values, indices] = sw::max<0>(h, sw::keepdim);
#else
    const auto [values, indices] = sw::max<1>(h, sw::keepdim);
#endif
    return h + values;
  }
};
using step = sw::train_step<nested<largest>::model, mean_task, plan, mesh, sw::adam<>>;
constexpr int nodes = step::program.node_count;
