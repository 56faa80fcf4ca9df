// SPDX-License-Identifier: Apache-2.0
// A user's own sum over sixteen ranks in bf16; of largest elements it is exact.
// expect: program: a tensor with elements of two bytes is summed over more ranks than is allowed
// located: reduce_scatter
#include <shardwise/module/function.hpp>

namespace sw = shardwise;

struct dp : sw::axis<16> {};
#ifdef SHARDWISE_FAIL
using sums = sw::partial<>;
#else
using sums = sw::partial<sw::reduction::max>;
#endif
struct summed {
  constexpr auto operator()(const auto& x) const { return sw::redistribute<dp, sw::shard<0>>(x); }
};
constexpr auto bytes =
    sw::function_step<summed, sw::mesh<dp>,
                      sw::inputs<sw::input_tensor<sw::bf16, sw::shape<32, 8>, sw::on<dp, sums>>>>::peak_bytes;
