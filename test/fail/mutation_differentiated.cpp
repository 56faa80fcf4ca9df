// SPDX-License-Identifier: Apache-2.0
// A graph is differentiated as it was traced, with its writes.
// expect: mutation: the graph writes tensors in place

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::relu_(sw::mul(x, y)); }
};
using operand = sw::input_tensor<float, sw::shape<4, 8>>;
using trace = sw::detail::gradient_trace<f, mesh, sw::inputs<operand, operand>, sw::wrt<0>>;
#ifdef SHARDWISE_FAIL
using joint = sw::staged<sw::autodiff::grad, trace>;
#else
using joint = sw::staged<sw::autodiff::grad, sw::detail::functional<trace, true>>;
#endif
constexpr int nodes = joint::value.g.node_count;
