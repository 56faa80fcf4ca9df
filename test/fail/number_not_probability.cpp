// SPDX-License-Identifier: Apache-2.0
// Dropout with a probability above 1.
// expect: dropout: the probability is not from 0 to 1

#include <shardwise/graph/functions/functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
#ifdef SHARDWISE_FAIL
  constexpr auto operator()(const auto& x) const { return sw::dropout(x, 1.5); }
#else
  constexpr auto operator()(const auto& x) const { return sw::dropout(sw::dropout(x, 1), 0); }
#endif
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>>>>;
constexpr int nodes = step::program.node_count;
