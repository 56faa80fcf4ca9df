// SPDX-License-Identifier: Apache-2.0
// The whole of an output of elements of bool is asked for.
// expect: full_output: of elements of type bool there is no whole vector, whose elements would be bits; return the output as
#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
struct twice {
  constexpr auto operator()(const auto& x) const { return x * 2.F; }
};
using program = sw::function_step<twice, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4>, sw::on<dp, sw::shard<0>>>>>;

void whole(sw::executor<program>& run) {
#ifdef SHARDWISE_FAIL
  run.full_output<bool>();
#else
  run.full_output<float>();
#endif
}
