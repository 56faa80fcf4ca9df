// SPDX-License-Identifier: Apache-2.0
// An adjoint of an operation with three results reads dy: it was the cotangent of some one of them.
// expect: call: an adjoint reads dy of an operation with several results, each of which has a cotangent of its own

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/module/function.hpp>

#include <custom_results.hpp>

#include "typed.hpp"

namespace own {
inline constexpr sw::autodiff::adjoint_rule adjoint = sw::autodiff::pulled<2>([](sw::autodiff::pullback& p) {
#ifdef SHARDWISE_FAIL
  p.give(0, p.emit(sw::op_code::expand, {{std::int64_t{1} << (p.operand(0).rank - 1), 0, 0, 0, 0, 0}}, 0, 0, p.dy));
#else
  p.give(0,
         p.emit(sw::op_code::expand, {{std::int64_t{1} << (p.operand(0).rank - 1), 0, 0, 0, 0, 0}}, 0, 0, p.cotangent(1)));
#endif
});
inline constexpr sw::custom_operation lines{
    .name = "lines", .operands = 1, .record = described::record(&described::rows), .adjoint = &adjoint};
}  // namespace own
struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const {
    const auto [exponentials, sums, where] = sw::call<own::lines>(x);
    return sw::sum(sums);
  }
};
using step = sw::gradient_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 3>>>, sw::wrt<0>>;
constexpr int nodes = step::program.node_count;
