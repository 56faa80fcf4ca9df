// SPDX-License-Identifier: Apache-2.0
// Sixteen ranks in bf16 again, by two axes of four: neither alone is more than is allowed.
// expect: program: a tensor with elements of two bytes is summed over more ranks than is allowed
// expect(text): ranks: 16; at most: 8
// located: all_reduce_1
#include <shardwise/module/function.hpp>

namespace sw = shardwise;

struct outer : sw::axis<4> {};
struct inner : sw::axis<4> {};
#ifdef SHARDWISE_FAIL
using wide = sw::bf16;
#else
using wide = float;
#endif
struct summed {
  constexpr auto operator()(const auto& x) const {
    return sw::redistribute<outer, sw::replicate>(sw::cast<wide>(sw::redistribute<inner, sw::replicate>(x)));
  }
};
constexpr auto bytes =
    sw::function_step<summed, sw::mesh<outer, inner>,
                      sw::inputs<sw::input_tensor<sw::bf16, sw::shape<32, 8>, sw::on<outer, sw::partial<>>,
                                                  sw::on<inner, sw::partial<>>>>>::peak_bytes;
