// SPDX-License-Identifier: Apache-2.0
// A write through one row of an expanded tensor.
// expect: functionalise: what is written in place is a view that cannot be written through

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const {
    const auto h = sw::relu(x);
#ifdef SHARDWISE_FAIL
    const auto row = sw::narrow<0, 1, 1>(sw::expand<3, 8>(h));
#else
    const auto row = sw::narrow<1, 1, 4>(h);
#endif
    sw::mul_(row, 2);
    return h;
  }
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<1, 8>>>>;
constexpr int nodes = step::program.node_count;
