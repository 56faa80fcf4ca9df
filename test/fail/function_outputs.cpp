// SPDX-License-Identifier: Apache-2.0
// A function that returns a number.
// expect: function: it returns nothing that is an output of a program

#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
#ifdef SHARDWISE_FAIL
  constexpr auto operator()(const auto&) const { return 3; }
#else
  constexpr auto operator()(const auto& x) const { return x * 3; }
#endif
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>>>>;
constexpr int nodes = step::program.node_count;
