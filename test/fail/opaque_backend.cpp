// SPDX-License-Identifier: Apache-2.0
// An opaque function in a program for a backend that calls none on the host.
// expect: opaque: an opaque function runs on the host

#include <shardwise/module/function.hpp>
#include <shardwise/runtime/host/backend.hpp>

#include "opaque_square.hpp"

struct f {
  constexpr auto operator()(const auto& x) const { return sw::opaque<square>(x); }
};
struct own_backend {
#ifndef SHARDWISE_FAIL
  static constexpr bool calls_host_functions = true;
#endif
  template <class Source>
  static constexpr std::int64_t workspace_bytes() {
    return sw::host_backend::workspace_bytes<Source>();
  }
};
using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4>>>;
using step = sw::function_step<f, mesh, inputs, sw::pipeline<>, own_backend>;
constexpr int nodes = step::program.node_count;
