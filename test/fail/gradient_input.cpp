// SPDX-License-Identifier: Apache-2.0
// The gradient of an input of integers.
// expect: gradient: the input named here does not exist, has integer elements

#include <shardwise/module/function.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct f {
  constexpr auto operator()(const auto& table, const auto& ids) const { return sw::embedding(table, ids); }
};
using table = sw::input_tensor<float, sw::shape<10, 4>>;
using ids = sw::input_tensor<std::int32_t, sw::shape<6>>;
#ifdef SHARDWISE_FAIL
using step = sw::gradient_step<f, mesh, sw::inputs<table, ids>, sw::wrt<1>>;
#else
using step = sw::gradient_step<f, mesh, sw::inputs<table, ids>, sw::wrt<0>>;
#endif
constexpr int nodes = step::program.node_count;
