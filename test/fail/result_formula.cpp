// SPDX-License-Identifier: Apache-2.0
// A formula of an operation with three results.
// expect: call: a formula computes one result
// expect(types): custom_tag<(own::)?lines>
// expect(text): operation: lines

#include <custom_results.hpp>
#include <shardwise/runtime/host/provided_kernels.hpp>
#include <shardwise/runtime/threads/threads.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

namespace own {
inline constexpr sw::custom_operation lines{
    .name = "lines", .operands = 1, .record = described::record(&described::rows), .adjoint = &sw::autodiff::unknown};
}
#ifdef SHARDWISE_FAIL
template <>
struct shardwise::formula<own::lines> {
  template <class m, class T>
  static constexpr T value(T x) {
    return m::exp(x);
  }
};
#else
template <>
struct shardwise::host_kernel<own::lines> : shardwise::host_kernel<described::lines> {};
#endif
struct line : sw::axis<2> {};
auto* const kernel = sw::runtime::custom_entry<own::lines, sw::dtype::f32, sw::thread_rank<sw::mesh<line>>>();
