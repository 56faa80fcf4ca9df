// SPDX-License-Identifier: Apache-2.0
// A pass that takes nodes for values, on a graph as it was traced.
// expect: mutation: the graph writes tensors in place
// expect: must_follow<shardwise::functionalise>

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/pass/simplify/simplify.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const { return sw::relu_(x); }
};
using trace = sw::detail::traced_function<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>>;
#ifdef SHARDWISE_FAIL
using merged = sw::apply_pass<sw::merge_common, trace>;
#else
using merged = sw::apply_pass<sw::merge_common, sw::apply_pass<sw::functionalise, trace>>;
#endif
constexpr int nodes = merged::value.node_count;
