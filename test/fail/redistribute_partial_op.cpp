// SPDX-License-Identifier: Apache-2.0
// A gradient through a partial maximum.
// expect: redistribute: a gradient is asked for through a partial with a reduction other than sum and avg, which has no adjoint

#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x, const auto& y) const {
    return sw::redistribute<tp, sw::replicate>(sw::redistribute<tp, sw::partial<sw::reduction::max>>(x)) * y;
  }
};
using in = sw::input_tensor<float, sw::shape<4>>;
#ifdef SHARDWISE_FAIL
using step = sw::gradient_step<f, mesh, sw::inputs<in, in>, sw::wrt<0>>;
#else
using step = sw::gradient_step<f, mesh, sw::inputs<in, in>, sw::wrt<1>>;
#endif
constexpr int nodes = step::program.node_count;
