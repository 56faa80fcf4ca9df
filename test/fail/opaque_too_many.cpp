// SPDX-License-Identifier: Apache-2.0
// Nine calls of opaque functions in one program.
// expect: opaque: the function calls more than 8 opaque functions
// expect(text): opaque functions: 9; at most: 8

#include <shardwise/module/function.hpp>

#include "opaque_square.hpp"

template <int N, class X>
constexpr auto times(const X& x) {
  if constexpr (N == 0) return x;
  else return times<N - 1>(sw::opaque<square>(x));
}
struct f {
#ifdef SHARDWISE_FAIL
  constexpr auto operator()(const auto& x) const { return times<9>(x); }
#else
  constexpr auto operator()(const auto& x) const { return times<8>(x); }
#endif
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>>>>;
constexpr int nodes = step::program.node_count;
