// SPDX-License-Identifier: Apache-2.0
// A write through a view of an implicit tensor, which a redistribution may have come before.
// expect: in place: the tensor is a view made of an implicit tensor

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& x) const {
    const auto h = sw::relu(x);
#ifdef SHARDWISE_FAIL
    sw::mul_(sw::reshape<2, 16>(sw::implicit(h)), 2);
#else
    sw::mul_(sw::reshape<2, 16>(sw::strict(sw::implicit(h))), 2);
    sw::mul_(sw::implicit(h), 2);
#endif
    return h;
  }
};
using step = sw::function_step<f, mesh, sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<tp, sw::shard<0>>>>>;
constexpr int nodes = step::program.node_count;
