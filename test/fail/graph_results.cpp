// SPDX-License-Identifier: Apache-2.0
// A pass that reads a node with several results as if it were a tensor.
// expect: graph: a node with several results is read as a tensor, or one of its results is named twice or not there
// expect(g++): <reads<true> ?>
// expect(clang): reads<true>

#include <custom_results.hpp>
#include <shardwise/graph/functions/reduction_functions.hpp>
#include <shardwise/module/function.hpp>

namespace sw = shardwise;

template <bool Wrong>
struct reads {
  using shardwise_pass = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    for (int i = 0; Wrong && i < g.node_count; ++i)
      if (g.nodes[i].op == sw::op_code::sum) g.nodes[i].in[0] = g.nodes[g.nodes[i].in[0]].in[0];
    return {};
  }
};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct total {
  constexpr auto operator()(const auto& x) const { return sw::sum(std::get<0>(sw::call<described::lines>(x))); }
};
#ifdef SHARDWISE_FAIL
using pass = reads<true>;
#else
using pass = reads<false>;
#endif
constexpr int nodes =
    sw::function_step<total, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 6>>>, sw::pipeline<pass>>::program
        .node_count;
