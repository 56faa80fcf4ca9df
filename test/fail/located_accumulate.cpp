// SPDX-License-Identifier: Apache-2.0
// A product in a module that is called with the first micro-batch: the error speaks of its rows, and names module and node.
// expect: matmul: the contracted dims have different extents
// expect(text): operands: float[6, 8] (dp: reduced), float[2, 8] (dp: shard<0>)
// located: inner einsum

#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/runtime/host/backend.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
template <class Bound = sw::unbound>
struct product : sw::module<product<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<6, 8>, sw::init::ones>, weight));
  constexpr auto forward(const auto& x) const {
#ifdef SHARDWISE_FAIL
    return sw::matmul(weight, x);
#else
    return sw::matmul(x, sw::permute<1, 0>(weight));
#endif
  }
};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (product<>, inner));
  constexpr auto forward(const auto& x) const { return inner(x); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum(m(x)); }
};
using step = sw::train_step<model, task, sw::plan<sw::data_parallel<dp>, sw::accumulate<2>>, sw::mesh<dp>, sw::adam<>>;
constexpr auto bytes = step::peak_bytes;
