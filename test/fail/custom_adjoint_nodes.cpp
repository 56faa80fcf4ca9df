// SPDX-License-Identifier: Apache-2.0
// An adjoint that states one node and appends six.
// expect: call: an adjoint appends more nodes than it states; state in pulled<N>

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/module/function.hpp>

#include "typed.hpp"

namespace own {
#ifdef SHARDWISE_FAIL
inline constexpr int stated = 1;
#else
inline constexpr int stated = 6;
#endif
inline constexpr sw::autodiff::adjoint_rule adjoint = sw::autodiff::pulled<stated>([](sw::autodiff::pullback& p) {
  int dx = p.dy;
  for (int k = 0; k < 6; ++k) dx = p.make(sw::op_code::sin, dx);
  p.give(0, dx);
});
constexpr sw::outcome shape(const sw::op_attr&, const sw::spec* in, int) { return {{}, sw::contiguous(in[0])}; }
inline constexpr sw::custom_operation same{
    .name = "same",
    .operands = 1,
    .record = sw::operations::by_rows(
        &shape,
        [](const sw::operation&, const sw::op_attr&, const sw::spec*, int, const sw::spec&) {
          using namespace sw::rows;
          sw::rule_rows t;
          t.push_back({{R}, R});
          return t;
        },
        &sw::operations::refuse_with<sw::problem::custom_placements>),
    .adjoint = &adjoint};
}  // namespace own
struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const { return sw::sum(sw::call<own::same>(x)); }
};
using step = sw::gradient_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 3>>>, sw::wrt<0>>;
constexpr int nodes = step::program.node_count;
