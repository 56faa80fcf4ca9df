// SPDX-License-Identifier: Apache-2.0
// A gradient through an operation without an adjoint, beside a way that has one: what is missing would be dropped.
// expect: gradient: a gradient is asked for through an operation that has no adjoint
// expect: shardwise::op::relu_dx
// expect(text): operation: relu_dx

#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct line : sw::axis<2> {};
using mesh = sw::mesh<line>;

struct f {
  constexpr auto operator()(const auto& x, const auto& y) const {
    return sw::detail::apply<sw::op_code::relu_dx, sw::detail::no_attr>(0, x, x) + y;
  }
};
struct g {
  constexpr auto operator()(const auto& x, const auto& y) const { return f{}(x, y) + x; }
};
using in = sw::input_tensor<float, sw::shape<4>>;
#ifdef SHARDWISE_FAIL
using step = sw::gradient_step<g, mesh, sw::inputs<in, in>, sw::wrt<0>>;
#else
using step = sw::gradient_step<g, mesh, sw::inputs<in, in>, sw::wrt<1>>;
#endif
constexpr int nodes = step::program.node_count;
