// SPDX-License-Identifier: Apache-2.0
// Other storage for what the program computes.
// expect: set_: only an input of the program can get other storage

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(auto& x, auto& y) const {
    const auto h = x + y;
#ifdef SHARDWISE_FAIL
    sw::set_(h, 2.f * y);
#else
    sw::set_(x, 2.f * y);
#endif
    return sw::sum(h);
  }
};
using square = sw::input_tensor<float, sw::shape<4, 4>>;
using step = sw::function_step<f, mesh, sw::inputs<square, square>>;
constexpr int nodes = step::program.node_count;
