// SPDX-License-Identifier: Apache-2.0
// The two tensors that a module returns are to be of a type.
// expect: mixed: output_dtype is said of a module whose forward returns no single tensor
// expect(text): class: two_ways

#include <tuple>

#include <shardwise/graph/functions/pointwise_functions.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
template <class Bound = sw::unbound>
struct two_ways : sw::module<two_ways<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 8>, net));
  constexpr auto forward(const auto& x) const { return std::tuple{net(x), x}; }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const {
    const auto both = m(x);
    return sw::mean(sw::cast<float>(std::get<0>(both)));
  }
};
#ifdef SHARDWISE_FAIL
using types = sw::mixed<sw::bf16, sw::output_dtype<float>>;
#else
using types = sw::mixed<sw::bf16>;
#endif
constexpr auto bytes = sw::train_step<two_ways, task, sw::plan<sw::data_parallel<dp>, types>, sw::mesh<dp>>::peak_bytes;
