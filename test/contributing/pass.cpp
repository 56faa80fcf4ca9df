// SPDX-License-Identifier: Apache-2.0
// The pass of CONTRIBUTING.md in a program.
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

#include "block.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;

struct often {
  constexpr auto operator()(const auto& x) const { return sw::relu(sw::relu(sw::relu(x))) * sw::relu(sw::relu(x)); }
};
template <class... P>
using step = sw::function_step<often, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 2>>>, sw::pipeline<P...>>;

constexpr int relus(const auto& g) {
  int n = 0;
  for (int i = 0; i < g.node_count; ++i) n += g.nodes[i].op == sw::op_code::relu ? 1 : 0;
  return n;
}
static_assert(relus(step<>::program) == 5 && relus(step<merge_relus>::program) == 2);

int main() { return 0; }
