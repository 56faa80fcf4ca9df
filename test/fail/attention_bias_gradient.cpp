// SPDX-License-Identifier: Apache-2.0
// A bias that is learned.
// expect: scaled_dot_product_attention: a gradient is asked for of the bias
// located: "" attention_biased

#include <shardwise/graph/functions/attention.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct line : sw::axis<2> {};
using mesh = sw::mesh<line>;

struct f {
  constexpr auto operator()(const auto& q, const auto& bias) const {
    return sw::scaled_dot_product_attention(q, q, q, bias);
  }
};
using q = sw::input_tensor<float, sw::shape<2, 4, 8, 16>>;
using bias = sw::input_tensor<float, sw::shape<8, 8>>;
#ifdef SHARDWISE_FAIL
using step = sw::gradient_step<f, mesh, sw::inputs<q, bias>, sw::wrt<1>>;
#else
using step = sw::gradient_step<f, mesh, sw::inputs<q, bias>, sw::wrt<0>>;
#endif
constexpr int nodes = step::program.node_count;
