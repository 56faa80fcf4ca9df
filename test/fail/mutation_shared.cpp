// SPDX-License-Identifier: Apache-2.0
// A write to one of two equal redistributions of one tensor, which are one node.
// expect: in place: the tensor is a redistribution that the program makes twice of one operand

#include <shardwise/graph/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const {
    const auto first = sw::redistribute<tp, sw::replicate>(x);
#ifdef SHARDWISE_FAIL
    const auto second = sw::redistribute<tp, sw::replicate>(x);
#else
    const auto second = sw::relu(first);
#endif
    sw::mul_(second, 2);
    return sw::add(first, second);
  }
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<tp, sw::shard<0>>>>>;
constexpr int nodes = step::program.node_count;
