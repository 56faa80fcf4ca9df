// SPDX-License-Identifier: Apache-2.0
// A pass that says it changes nothing is taken at its word only where its graph is the one that it was given.
#include <shardwise/module/function.hpp>
#include <shardwise/runtime/host/backend.hpp>

namespace {

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const { return x * 3.0; }
};
// Doubles every factor, and says `unchanged`.
template <bool Changes>
struct says_unchanged {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr bool unchanged = true;
    static constexpr auto value = [] {
      auto g = Source::value;
      for (int i = 0; Changes && i < g.node_count; ++i) g.nodes[i].f *= 2;
      return g;
    }();
  };
};
// Really the graph that it was given.
template <int>
struct keeps {
  using shardwise_pass = void;
  template <class Source>
  struct run {
    static constexpr bool unchanged = true;
    static constexpr const auto& value = Source::value;
  };
};
template <class... Pass>
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>>>, sw::pipeline<Pass...>>;
template <class Step>
constexpr double factor = [] {
  double product = 1;
  for (int i = 0; i < Step::program.node_count; ++i)
    if (Step::program.nodes[i].op == sw::op_code::scale) product *= Step::program.nodes[i].f;
  return product;
}();
static_assert(factor<step<>> == 3 && factor<step<keeps<0>>> == 3 && factor<step<says_unchanged<false>>> == 3);
static_assert(factor<step<says_unchanged<true>>> == 6 && factor<step<keeps<0>, says_unchanged<true>, keeps<1>>> == 6);

}  // namespace
