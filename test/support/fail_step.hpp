// SPDX-License-Identifier: Apache-2.0
// The step that wrong programs about passes share: two layers, Adam, two data-parallel ranks.
#pragma once

#include <shardwise/graph/functions/pointwise_functions.hpp>
#include <shardwise/module/iterated.hpp>
#include <shardwise/module/layers.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/optimizer/list_optimizer.hpp>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using plan = sw::plan<sw::data_parallel<dp>>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net1), (sw::linear<6, 6>, net2));
  constexpr auto forward(const auto& x) const { return sw::relu(net2(sw::relu(net1(x)))); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum(m(x)); }
};
template <class... Passes>
using step = sw::train_step<model, task, plan, mesh, sw::adam<>, sw::pipeline<Passes...>>;
// One bucket, all_reduce, and the loss, all_reduce_1.
using bare_step = step<sw::fused_optimizer, sw::comm_fusion_in_place<>, sw::remove_copy_from_optimizer>;
using listed_step = step<sw::fused_optimizer, sw::remove_copy_from_optimizer>;

template <class Step>
struct graph_in {
  static constexpr const auto& value = Step::program;
};
