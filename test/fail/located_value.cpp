// SPDX-License-Identifier: Apache-2.0
// What depends on the program's values, not on its types, is placed as well: a probability of 2, two modules deep.
// expect: dropout: the probability is not from 0 to 1
// expect(text): module: layers.0.mlp; node: dropout
// located: layers.0.mlp dropout

#include "nested_step.hpp"

#ifdef SHARDWISE_FAIL
constexpr double p = 2;
#else
constexpr double p = 0.2;
#endif
struct dropped {
  constexpr auto operator()(const auto& h, const auto& x) const { return sw::dropout(h, p) + x; }
};
using step = sw::train_step<nested<dropped>::model, mean_task, plan, mesh, sw::adam<>>;
constexpr int nodes = step::program.node_count;
