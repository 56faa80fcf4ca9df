// SPDX-License-Identifier: Apache-2.0
// A gradient through an opaque function.
// expect: opaque: a gradient is asked for through an opaque function, of which nothing is known

#include <shardwise/module/function.hpp>

#include "opaque_square.hpp"

struct f {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::opaque<square>(x) * y; }
};
using in = sw::input_tensor<float, sw::shape<4>>;
#ifdef SHARDWISE_FAIL
using step = sw::gradient_step<f, mesh, sw::inputs<in, in>, sw::wrt<0>>;
#else
using step = sw::gradient_step<f, mesh, sw::inputs<in, in>, sw::wrt<1>>;
#endif
constexpr int nodes = step::program.node_count;
