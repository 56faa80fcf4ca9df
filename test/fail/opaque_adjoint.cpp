// SPDX-License-Identifier: Apache-2.0
// An opaque function's adjoint that takes no cotangent: nobody would see it but by a gradient that is refused as if there were none.
// expect: opaque: the function has a member adjoint that cannot be called with its blocks

#include <shardwise/module/function.hpp>

#include "opaque_square.hpp"

struct with_adjoint : square {
#ifdef SHARDWISE_FAIL
  template <int K, class T>
  static void adjoint(std::span<T> dx, std::span<const T> x) {
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = 2 * x[i];
  }
#else
  template <int K, class T>
  static void adjoint(std::span<T> dx, std::span<const T> dy, std::span<const T> x) {
    for (std::size_t i = 0; i < dx.size(); ++i) dx[i] = 2 * x[i] * dy[i];
  }
#endif
};
struct f {
  constexpr auto operator()(const auto& x) const { return sw::opaque<with_adjoint>(x); }
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>>>>;
constexpr int nodes = step::program.node_count;
