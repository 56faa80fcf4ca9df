// SPDX-License-Identifier: Apache-2.0
// A function is traced on one mesh with an input that lives on another one of the same size.
// expect: operands live on different meshes; bind both to one mesh<...> type

#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
struct dp : sw::axis<2> {};
struct f {
  constexpr auto operator()(const auto& x) const { return x * 3; }
};
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4>, sw::mesh<dp>>;
#else
using x = typed<float, sw::shape<4>, sw::mesh<tp>>;
#endif
using step = sw::function_step<f, sw::mesh<tp>, sw::inputs<sw::input_like<x>>>;
constexpr int nodes = step::program.node_count;
