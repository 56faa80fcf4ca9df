// SPDX-License-Identifier: Apache-2.0
// A function that starts a redistribution and never waits for it.
// expect: redistribute_async: a pending tensor of this program is never waited for
// expect: std::move(p).wait()

#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const {
    auto p = sw::redistribute_async<tp, sw::replicate>(x);
#ifdef SHARDWISE_FAIL
    const auto y = sw::redistribute<tp, sw::replicate>(x);
#else
    const auto y = std::move(p).wait();
#endif
    return y * 2.0;
  }
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 4>, sw::on<tp, sw::shard<0>>>>>;
constexpr int nodes = step::program.node_count;
