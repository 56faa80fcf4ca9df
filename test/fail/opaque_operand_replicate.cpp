// SPDX-License-Identifier: Apache-2.0
// An opaque function of shards and a replicate tensor, of which each rank would have a summand of the gradient.
// expect: opaque: the operands are placed differently on a mesh axis

#include <shardwise/module/function.hpp>

#include "opaque_square.hpp"

struct scaled {
  template <class T>
  void operator()(std::span<T> y, std::span<const T> x, std::span<const T> by) const {
    for (std::size_t i = 0; i < y.size(); ++i) y[i] = x[i] * by[0];
  }
};
struct f {
  constexpr auto operator()(const auto& x, const auto& by) const { return sw::opaque<scaled>(x, by); }
};
#ifdef SHARDWISE_FAIL
using whole = sw::replicate;
#else
using whole = sw::reduced;
#endif
using step = sw::function_step<
    f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>, sw::shard<0>>, sw::input_tensor<float, sw::shape<1>, whole>>>;
constexpr int nodes = step::program.node_count;
