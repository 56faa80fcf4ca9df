// SPDX-License-Identifier: Apache-2.0
// An operation of one's own is called as one of the library is: the graph's second relu would be which one's?
// expect: call: a custom operation's name is a word of letters, digits and underscores that is no operation's
// expect(types): custom_tag<(own::)?op>
// expect(text): operation: relu

#include <shardwise/graph/functions/custom.hpp>

#include "typed.hpp"

namespace own {
#ifdef SHARDWISE_FAIL
inline constexpr char name[] = "relu";
#else
inline constexpr char name[] = "relu_of_mine";
#endif
inline constexpr sw::custom_operation op{.name = name,
                                         .operands = 1,
                                         .record = sw::operations::pointwise(sw::linearity::none),
                                         .adjoint = &sw::autodiff::unknown};
}  // namespace own
struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4>, sw::mesh<tp>, sw::shard<0>>;
using y = decltype(sw::call<own::op>(x{}));
