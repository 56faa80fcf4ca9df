// SPDX-License-Identifier: Apache-2.0
// The storage of one input for another one.
// expect: set_: the data is no tensor that the program computes, all of its storage

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(auto& x, auto& y) const {
#ifdef SHARDWISE_FAIL
    sw::set_(x, y);
#else
    sw::set_(x, y + 0.f);
#endif
    return sw::sum(x);
  }
};
using square = sw::input_tensor<float, sw::shape<4, 4>>;
using step = sw::function_step<f, mesh, sw::inputs<square, square>>;
constexpr int nodes = step::program.node_count;
