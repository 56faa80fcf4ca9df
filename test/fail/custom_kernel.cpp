// SPDX-License-Identifier: Apache-2.0
// A custom operation that has no kernel, in a program that a host runs.
// expect: call: the custom operation has no kernel here; specialise shardwise::formula<operation> if it is elementwise
// expect(types): custom_tag<(own::)?twice>
// expect(text): operation: twice; element: float

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/runtime/host/provided_kernels.hpp>
#include <shardwise/runtime/threads/threads.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

namespace own {
inline constexpr sw::custom_operation twice{.name = "twice",
                                            .operands = 1,
                                            .record = sw::operations::pointwise(sw::linearity::first),
                                            .adjoint = &sw::autodiff::unknown};
}
#ifndef SHARDWISE_FAIL
template <>
struct shardwise::formula<own::twice> {
  template <class m, class T>
  static constexpr T value(T x) {
    return x + x;
  }
};
#endif
struct line : sw::axis<2> {};
auto* const kernel = sw::runtime::custom_entry<own::twice, sw::dtype::f32, sw::thread_rank<sw::mesh<line>>>();
