// SPDX-License-Identifier: Apache-2.0
// The adjoint of an operation of one's own may give its nodes as many shapes as it likes: there is room for one each.
#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/shardwise.hpp>

namespace {

namespace sw = shardwise;

constexpr int shapes = 63;  // sums over every set of six dims but the empty one
inline constexpr sw::autodiff::adjoint_rule adjoint = sw::autodiff::pulled<2 * shapes>([](sw::autodiff::pullback& p) {
  int dx = p.dy;
  for (int dims = 1; dims <= shapes; ++dims) dx = p.make(sw::op_code::add, dx, p.make(sw::op_code::sum, p.dy, -1, 0, dims));
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

struct tp : sw::axis<2> {};
struct f {
  constexpr auto operator()(const auto& x) const { return sw::sum(sw::call<same>(x) * x); }
};
using step =
    sw::gradient_step<f, sw::mesh<tp>, sw::inputs<sw::input_tensor<float, sw::shape<2, 2, 2, 2, 2, 2>>>, sw::wrt<0>>;
static_assert(step::program.spec_count >= shapes && step::program.node_count >= 2 * shapes);

}  // namespace
