// SPDX-License-Identifier: Apache-2.0
// More operands than a node holds.
// expect: call: a custom operation has from one to eight operands
// expect(types): custom_tag<(own::)?op>

#include <shardwise/graph/functions/custom.hpp>

#include "typed.hpp"

namespace own {
#ifdef SHARDWISE_FAIL
inline constexpr int operands = 9;
#else
inline constexpr int operands = 8;
#endif
inline constexpr sw::custom_operation op{.name = "op",
                                         .operands = operands,
                                         .record = sw::operations::pointwise(sw::linearity::none),
                                         .adjoint = &sw::autodiff::unknown};
template <class X, std::size_t... I>
constexpr auto of_all(const X& x, std::index_sequence<I...>) {
  return sw::call<op>((void(I), x)...);
}
}  // namespace own
struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4>, sw::mesh<tp>, sw::shard<0>>;
using y = decltype(own::of_all(x{}, std::make_index_sequence<own::operands>{}));
