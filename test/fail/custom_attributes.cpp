// SPDX-License-Identifier: Apache-2.0
// A custom operation with six attributes: a node holds five.
// expect: call: an operation has at most 5 attributes

#include <shardwise/graph/functions/custom.hpp>

#include "typed.hpp"

namespace own {
inline constexpr sw::custom_operation shift{.name = "shift",
                                            .operands = 1,
                                            .record = sw::operations::pointwise(sw::linearity::none),
                                            .adjoint = &sw::autodiff::unknown};
}
struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4>, sw::mesh<tp>, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::call<own::shift, 1, 2, 3, 4, 5, 6>(x{}));
#else
using y = decltype(sw::call<own::shift, 1, 2, 3, 4, 5>(x{}));
#endif
