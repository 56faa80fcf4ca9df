// SPDX-License-Identifier: Apache-2.0
// A number with a fraction written into a tensor of integers.
// expect: a number that becomes an element of an int32 tensor is not whole

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& i) const {
#ifdef SHARDWISE_FAIL
    return sw::full_like(i, 1.5);
#else
    return std::tuple(sw::full_like(i, -2), sw::lt(i, 1.5), sw::eq(i, 3e9));  // comparisons take any number
#endif
  }
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<std::int32_t, sw::shape<4>>>>;
constexpr int nodes = step::program.node_count;
