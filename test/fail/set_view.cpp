// SPDX-License-Identifier: Apache-2.0
// A row of an input, read when the input has other storage.
// expect: set_: a view of the tensor from before set_ is read afterwards

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(auto& x, auto& y) const {
    const auto row = sw::narrow<0, 1, 1>(x);
#ifdef SHARDWISE_FAIL
    sw::set_(x, x + y);
    return sw::sum(row);
#else
    const auto before = sw::sum(row);
    sw::set_(x, x + y);
    return before;
#endif
  }
};
using square = sw::input_tensor<float, sw::shape<4, 4>>;
using step = sw::function_step<f, mesh, sw::inputs<square, square>>;
constexpr int nodes = step::program.node_count;
