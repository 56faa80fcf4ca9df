// SPDX-License-Identifier: Apache-2.0
// An opaque function in a program for another backend than the host.
// expect: opaque: an opaque function runs on the host

#include <shardwise/module/function.hpp>
#include <shardwise/runtime/cuda/backend.hpp>

#include "opaque_square.hpp"

struct f {
  constexpr auto operator()(const auto& x) const { return sw::opaque<square>(x); }
};
using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4>>>;
#ifdef SHARDWISE_FAIL
using step = sw::function_step<f, mesh, inputs, sw::pipeline<>, sw::cuda_backend>;
#else
using step = sw::function_step<f, mesh, inputs>;
#endif
constexpr int nodes = step::program.node_count;
