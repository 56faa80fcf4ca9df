// SPDX-License-Identifier: Apache-2.0
// A write through a detached view: the tensor's gradient would know nothing of it.
// expect: functionalise: what is written in place is a view that cannot be written through

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/graph/functions/views.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const {
    const auto h = sw::relu(x);
    const auto apart = sw::detach(h);
    sw::mul_(apart, 2);
#ifdef SHARDWISE_FAIL
    return h;
#else
    return apart;
#endif
  }
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<1, 8>>>>;
constexpr int nodes = step::program.node_count;
