// SPDX-License-Identifier: Apache-2.0
// Groups that are to be gathered none ahead.
// expect: prefetch: groups are gathered a number of groups ahead of their use
// expect(g++): have<0>
// expect(clang): have<0>

#include <shardwise/module/function.hpp>
#include <shardwise/pass/communication/prefetch.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const { return sw::tanh(sw::redistribute<tp, sw::replicate>(x)); }
};
#ifdef SHARDWISE_FAIL
constexpr int ahead = 0;
#else
constexpr int ahead = 1;
#endif
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 4>, sw::on<tp, sw::shard<0>>>>,
                               sw::pipeline<sw::prefetch<ahead>>>;
constexpr int nodes = step::program.node_count;
