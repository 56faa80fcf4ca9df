// SPDX-License-Identifier: Apache-2.0
// Other storage for an input of a program that computes gradients.
// expect: set_: the program computes gradients

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(auto& x, auto& y) const {
    sw::set_(x, x + y);
    return sw::sum(y * x);
  }
};
using square = sw::input_tensor<float, sw::shape<4, 4>>;
#ifdef SHARDWISE_FAIL
using step = sw::gradient_step<f, mesh, sw::inputs<square, square>, sw::wrt<1>>;
#else
using step = sw::function_step<f, mesh, sw::inputs<square, square>>;
#endif
constexpr int nodes = step::program.node_count;
