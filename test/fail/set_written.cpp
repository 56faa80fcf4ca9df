// SPDX-License-Identifier: Apache-2.0
// A tensor that is written after its storage became that of another one.
// expect: set_: the tensor or its data is written in place afterwards

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
    sw::set_(x, h);
    sw::mul_(h, 2);
#else
    sw::mul_(h, 2);
    sw::set_(x, h);
#endif
    return sw::sum(x);
  }
};
using square = sw::input_tensor<float, sw::shape<4, 4>>;
using step = sw::function_step<f, mesh, sw::inputs<square, square>>;
constexpr int nodes = step::program.node_count;
