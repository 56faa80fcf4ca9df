// SPDX-License-Identifier: Apache-2.0
// An opaque function in a program for another backend than the host.
// expect: opaque: an opaque function runs on the host

#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct square {
  template <class T>
  void operator()(std::span<T> out, std::span<const T> in) const {
    for (std::size_t i = 0; i < out.size(); ++i) out[i] = in[i] * in[i];
  }
};
struct other_backend;
struct f {
  constexpr auto operator()(const auto& x) const { return sw::opaque<square>(x); }
};
using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4>>>;
#ifdef SHARDWISE_FAIL
using step = sw::function_step<f, mesh, inputs, sw::pipeline<>, other_backend>;
#else
using step = sw::function_step<f, mesh, inputs>;
#endif
constexpr int nodes = step::program.node_count;
