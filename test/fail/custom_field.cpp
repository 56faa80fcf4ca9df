// SPDX-License-Identifier: Apache-2.0
// A custom operation that does not say what differentiation makes of it.
// expect(g++): could not convert .* to .*stated<const shardwise::autodiff::adjoint_rule\*>
// expect(clang): no matching constructor for initialization of .*stated<const (shardwise::)?autodiff::adjoint_rule \*>
// expect(nvcc): no instance of constructor "shardwise::stated<T>::stated .with T=const shardwise::autodiff::adjoint_rule \*."

#include <shardwise/graph/functions/custom.hpp>

namespace sw = shardwise;

#ifdef SHARDWISE_FAIL
inline constexpr sw::custom_operation shift{
    .name = "shift", .operands = 1, .record = sw::operations::pointwise(sw::linearity::none)};
#else
inline constexpr sw::custom_operation shift{.name = "shift",
                                            .operands = 1,
                                            .record = sw::operations::pointwise(sw::linearity::none),
                                            .adjoint = &sw::autodiff::unknown};
#endif
