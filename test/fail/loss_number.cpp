// SPDX-License-Identifier: Apache-2.0
// Label smoothing with a share above 1.
// expect: loss: a number is out of its range

#include <shardwise/graph/functions/losses.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
inline constexpr double share = 1.5;
#else
inline constexpr double share = 0.5;
#endif
struct f {
  constexpr auto operator()(const auto& x, const auto& t) const {
    return sw::cross_entropy(x, t, sw::label_smoothing{share});
  }
};
using step =
    sw::function_step<f, mesh,
                      sw::inputs<sw::input_tensor<float, sw::shape<4, 3>>, sw::input_tensor<std::int32_t, sw::shape<4>>>>;
constexpr int nodes = step::program.node_count;
