// SPDX-License-Identifier: Apache-2.0
// An adjoint that reads a fourth result of an operation with three.
// expect: call: the operation has no result of this number
// expect(text): result: 3; results: 3
// located:  lines

#include <custom_results.hpp>
#include <shardwise/graph/functions/reduction_functions.hpp>
#include <shardwise/module/function.hpp>

namespace own {
namespace sw = shardwise;
inline constexpr sw::autodiff::adjoint_rule adjoint = sw::autodiff::pulled<2>([](sw::autodiff::pullback& p) {
#ifdef SHARDWISE_FAIL
  const int slope = p.result(3);
#else
  const int slope = p.result(0);
#endif
  p.give(0, p.make(sw::op_code::mul, p.cotangent(0), slope));
});
inline constexpr sw::custom_operation lines{
    .name = "lines", .operands = 1, .record = described::record(&described::rows), .adjoint = &adjoint};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct total {
  constexpr auto operator()(const auto& x) const { return sw::sum(std::get<0>(sw::call<lines>(x))); }
};
}  // namespace own
namespace sw = shardwise;
using step = sw::gradient_step<own::total, own::mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 6>>>, sw::wrt<0>>;
constexpr int nodes = step::program.node_count;
