// SPDX-License-Identifier: Apache-2.0
// A dropout layer that nothing has bound: whether it draws is not known.
// expect: training: the module does not know whether it trains, since no program has bound it
// expect(g++): dropout_module<1, 4
// expect(clang): dropout_module<1, 4
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
struct thinned {
  constexpr auto operator()(const auto& x) const {
#ifdef SHARDWISE_FAIL
    return sw::dropout_module<1, 4>{}(x);
#else
    return sw::dropout(x, 0.25);
#endif
  }
};
using step = sw::function_step<thinned, mesh, sw::inputs<sw::input_tensor<float, sw::shape<8>>>>;
constexpr auto bytes = step::peak_bytes;
