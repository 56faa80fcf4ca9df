// SPDX-License-Identifier: Apache-2.0
// Two operations of one name in one program, by a compiler that compares few addresses in constants.
// flags: -fsanitize=undefined
// expect: call: two custom operations of one program have the same name

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <int N>
inline constexpr sw::custom_operation gate{.name = "gate",
                                           .operands = 1,
                                           .record = sw::operations::pointwise(sw::linearity::none),
                                           .adjoint = &sw::autodiff::unknown};
struct f {
  constexpr auto operator()(const auto& x) const {
#ifdef SHARDWISE_FAIL
    return sw::call<gate<1>>(sw::call<gate<0>>(x));
#else
    return sw::call<gate<0>>(sw::call<gate<0>>(x));
#endif
  }
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>>>>;
constexpr int nodes = step::program.node_count;
