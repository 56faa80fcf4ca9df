// SPDX-License-Identifier: Apache-2.0
// An adjoint applies an operation of two operands to one.
// expect: call: the custom operation takes another number of operands; its record says how many

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/module/function.hpp>

#include "typed.hpp"

namespace own {
inline constexpr sw::custom_operation slope{.name = "slope",
                                            .operands = 2,
                                            .record = sw::operations::pointwise(sw::linearity::first),
                                            .adjoint = &sw::autodiff::unknown};
inline constexpr sw::autodiff::adjoint_rule bend_adjoint = sw::autodiff::pulled([](sw::autodiff::pullback& p) {
#ifdef SHARDWISE_FAIL
  p.give(0, p.make(slope, p.n.a, 0, p.dy));
#else
  p.give(0, p.make(slope, p.n.a, 0, p.dy, p.n.in[0]));
#endif
});
inline constexpr sw::custom_operation bend{
    .name = "bend", .operands = 1, .record = sw::operations::pointwise(sw::linearity::none), .adjoint = &bend_adjoint};
}  // namespace own
struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const { return sw::sum(sw::call<own::bend>(x)); }
};
using step = sw::gradient_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>>>, sw::wrt<0>>;
constexpr int nodes = step::program.node_count;
