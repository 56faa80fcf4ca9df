// SPDX-License-Identifier: Apache-2.0
// An input that gets other storage in a program for a GPU.
// expect: set_: the program is for a backend that does not exchange the storage of inputs

#include <shardwise/graph/functions/mutating_functions.hpp>
#include <shardwise/module/function.hpp>
#include <shardwise/runtime/cuda/backend.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(auto& x, auto& y) const {
    sw::set_(x, x + y);
    return sw::sum(x);
  }
};
using square = sw::input_tensor<float, sw::shape<4, 4>>;
#ifdef SHARDWISE_FAIL
using step = sw::function_step<f, mesh, sw::inputs<square, square>, sw::pipeline<>, sw::cuda_backend>;
#else
using step = sw::function_step<f, mesh, sw::inputs<square, square>>;
#endif
constexpr int nodes = step::program.node_count;
