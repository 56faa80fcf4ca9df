// SPDX-License-Identifier: Apache-2.0
// The gradient of a replicate tensor through its blocks, which the ranks may use alike or each in its own way: torchtitan#1805,
// and jax#36886, where the gradient inside a function of local blocks differs on two devices.
// expect: to_local: a gradient is asked for through the blocks of a tensor that is replicate on a mesh axis

#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <class Grad>
struct own_rows {
  constexpr auto operator()(const auto& x, const auto& w) const { return sw::to_local<Grad>(x) * w; }
};
using x = sw::input_tensor<float, sw::shape<4, 3>>;
using w = sw::input_tensor<float, sw::shape<8, 3>, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using step = sw::gradient_step<own_rows<void>, mesh, sw::inputs<x, w>, sw::wrt<0>>;
#else
using step = sw::gradient_step<own_rows<sw::grad<sw::partial<>>>, mesh, sw::inputs<x, w>, sw::wrt<0>>;
using other = sw::gradient_step<own_rows<void>, mesh, sw::inputs<x, w>, sw::wrt<1>>;  // x takes no gradient
using forward = sw::function_step<own_rows<void>, mesh, sw::inputs<x, w>>;
constexpr int more = other::program.node_count + forward::program.node_count;
#endif
constexpr int nodes = step::program.node_count;
