// SPDX-License-Identifier: Apache-2.0
// An opaque function of a whole tensor and a shard: a result typed replicate would differ from rank to rank.
// expect: opaque: the operands are placed differently on a mesh axis

#include <shardwise/module/function.hpp>

#include "opaque_square.hpp"

struct join {
  template <class T>
  constexpr void operator()(std::span<T> out, std::span<const T> a, std::span<const T> b) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = a[i] + b[i < b.size() ? i : 0];
  }
};
struct f {
  constexpr auto operator()(const auto& x, const auto& y) const { return sw::opaque<join>(x, y); }
};
#ifdef SHARDWISE_FAIL
using other = sw::input_tensor<float, sw::shape<4>, sw::shard<0>>;
#else
using other = sw::input_tensor<float, sw::shape<4>, sw::reduced>;
#endif
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>>, other>>;
constexpr int nodes = step::program.node_count;
