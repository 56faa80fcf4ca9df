// SPDX-License-Identifier: Apache-2.0
// Gradients are summed over sixteen ranks in bf16.
// expect: program: a tensor with elements of two bytes is summed over more ranks than is allowed
// expect(text): ranks: 16; at most: 8
// located: net all_reduce_1
#include <shardwise/module/train_step.hpp>

#include <small_models.hpp>

struct dp : sw::axis<16> {};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<32, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(sw::cast<float>(m(x))); }
};
template <class... Entries>
using step = sw::train_step<one_linear, task, sw::plan<sw::data_parallel<dp>, Entries...>, sw::mesh<dp>>;
using low = sw::mixed<sw::bf16, sw::reduce_dtype<sw::bf16>>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step<low>::peak_bytes;
#else
constexpr auto bytes = step<low, sw::reduce_within<16>>::peak_bytes + step<sw::mixed<sw::bf16>>::peak_bytes;
#endif
