// SPDX-License-Identifier: Apache-2.0
// The gradient of an input that the result does not depend on.
// expect: gradient: the first output does not depend on the input named here

#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
#ifdef SHARDWISE_FAIL
  constexpr auto operator()(const auto& x, const auto&) const { return x * 3; }
#else
  constexpr auto operator()(const auto& x, const auto& y) const { return x * y; }
#endif
};
using in = sw::input_tensor<float, sw::shape<4>>;
using step = sw::gradient_step<f, mesh, sw::inputs<in, in>, sw::wrt<0, 1>>;
constexpr int nodes = step::program.node_count;
