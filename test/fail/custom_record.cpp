// SPDX-License-Identifier: Apache-2.0
// A custom operation that says that it draws random numbers.
// expect: call: a custom operation is pointwise or computed
// expect(types): custom_tag<(own::)?noise>

#include <shardwise/graph/functions/custom.hpp>

#include "typed.hpp"

namespace own {
constexpr sw::operation drawing = [] {
  sw::operation o = sw::operations::pointwise(sw::linearity::none);
#ifdef SHARDWISE_FAIL
  o.random = true;
#endif
  return o;
}();
inline constexpr sw::custom_operation noise{
    .name = "noise", .operands = 1, .record = drawing, .adjoint = &sw::autodiff::unknown};
}  // namespace own
struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4>, sw::mesh<tp>, sw::shard<0>>;
using y = decltype(sw::call<own::noise>(x{}));
