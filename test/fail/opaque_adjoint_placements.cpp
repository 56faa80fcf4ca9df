// SPDX-License-Identifier: Apache-2.0
// An opaque function whose result is reduced, so that each rank has a summand of its cotangent, and a replicate operand, of which
// every rank would have the whole gradient.
// expect: opaque: a gradient is asked for of a replicate operand where the function's result is reduced on a mesh axis

#include <shardwise/module/function.hpp>

#include "opaque_square.hpp"

struct product {
  template <class T>
  void operator()(std::span<T> y, std::span<const T> a, std::span<const T> b) const {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = a[i] * b[i];
  }
  template <int K, class T>
  static void adjoint(std::span<T> d, std::span<const T> dy, std::span<const T> a, std::span<const T> b) {
    for (std::size_t i = 0; i < d.size(); ++i) d[i] = (K == 0 ? b[i] : a[i]) * dy[i];
  }
};
struct f {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::opaque<product>(x, y); }
};
template <class Placement>
using in = sw::input_tensor<float, sw::shape<4>, Placement>;
#ifdef SHARDWISE_FAIL
using step = sw::gradient_step<f, mesh, sw::inputs<in<sw::reduced>, in<sw::replicate>>, sw::wrt<1>>;
#else
using step = sw::gradient_step<f, mesh, sw::inputs<in<sw::replicate>, in<sw::reduced>>, sw::wrt<1>>;
#endif
constexpr int nodes = step::program.node_count;
