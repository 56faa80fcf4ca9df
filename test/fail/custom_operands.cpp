// SPDX-License-Identifier: Apache-2.0
// An operation of two operands is given one.
// expect: call: the custom operation takes another number of operands; its record says how many
// expect(types): custom_tag<(own::)?product>
// expect(text): operation: product

#include <shardwise/graph/functions/custom.hpp>

#include "typed.hpp"

namespace own {
inline constexpr sw::custom_operation product{.name = "product",
                                              .operands = 2,
                                              .record = sw::operations::pointwise(sw::linearity::each),
                                              .adjoint = &sw::autodiff::unknown};
}
struct tp : sw::axis<2> {};
using x = typed<float, sw::shape<4>, sw::mesh<tp>, sw::shard<0>>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::call<own::product>(x{}));
#else
using y = decltype(sw::call<own::product>(x{}, x{}));
#endif
