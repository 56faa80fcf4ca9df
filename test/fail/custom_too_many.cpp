// SPDX-License-Identifier: Apache-2.0
// Seventeen custom operations in one program.
// expect: call: the program calls more than 16 different custom operations
// expect(text): custom operations: 17; at most: 16

#include <shardwise/graph/functions/custom.hpp>
#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <int N>
inline constexpr char name[] = {'n', 't', 'h', '_', static_cast<char>('a' + N), '\0'};
template <int N>
inline constexpr sw::custom_operation nth{.name = name<N>,
                                          .operands = 1,
                                          .record = sw::operations::pointwise(sw::linearity::none),
                                          .adjoint = &sw::autodiff::unknown};
template <int N, class X>
constexpr auto times(const X& x) {
  if constexpr (N == 0) return x;
  else return times<N - 1>(sw::call<nth<N>>(x));
}
struct f {
#ifdef SHARDWISE_FAIL
  constexpr auto operator()(const auto& x) const { return times<17>(x); }
#else
  constexpr auto operator()(const auto& x) const { return times<16>(times<16>(x)); }
#endif
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>>>>;
constexpr int nodes = step::program.node_count;
