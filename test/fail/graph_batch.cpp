// SPDX-License-Identifier: Apache-2.0
// A pass that puts a node between the members of a batch of collectives.
// expect: graph: a batch of collectives is not whole
// expect(g++): <between<true> ?>
// expect(clang): between<true>

#include <shardwise/module/function.hpp>
#include <shardwise/pass/communication/batch_collectives.hpp>

#include "typed.hpp"

template <bool Wrong>
struct between {
  using shardwise_pass = void;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    for (int i = 0; Wrong && i + 1 < g.node_count; ++i) {  // exchanges a batch's last member and the node behind it
      const int last = sw::batch_end(g, i) - 1;
      if (sw::batch_number(g.nodes[i]) == 0 || last == i) continue;
      const sw::node n = g.nodes[last];
      g.nodes[last] = g.nodes[last + 1];
      g.nodes[last + 1] = n;
      for (int k = 0; k < g.nodes[last].inputs; ++k)
        if (g.nodes[last].in[k] == last) return {};
      for (int j = last; j < g.node_count; ++j)
        for (int k = 0; k < g.nodes[j].inputs; ++k) {
          int& x = g.nodes[j].in[k];
          if (j > last + 1) x = x == last ? last + 1 : x == last + 1 ? last : x;
        }
      return {};
    }
    return {};
  }
};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x, const auto& y) const {
    const auto a = sw::redistribute<tp, sw::replicate>(x);
    const auto b = sw::redistribute<tp, sw::replicate>(y);
    return sw::tanh(a) * b;
  }
};
#ifdef SHARDWISE_FAIL
using pass = between<true>;
#else
using pass = between<false>;
#endif
using sharded = sw::input_tensor<float, sw::shape<4, 4>, sw::on<tp, sw::shard<0>>>;
using step = sw::function_step<f, mesh, sw::inputs<sharded, sharded>, sw::pipeline<sw::batch_collectives, pass>>;
static_assert(step::traffic.collectives == 1);
constexpr int nodes = step::program.node_count;
