// SPDX-License-Identifier: Apache-2.0
// What wrong programs about buffers share: a layer, a running mean beside it, four rows over two data-parallel ranks.
#pragma once

#include <shardwise/shardwise.hpp>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using plan = sw::plan<sw::data_parallel<dp>>;
struct mean_task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};

// Forward is called with what the layer gives, and the buffer.
template <class Forward>
struct models {
  template <class Bound = sw::unbound>
  struct model : sw::module<model<Bound>, Bound> {
    SHARDWISE_MEMBERS(Bound, (sw::linear<8, 6>, net), (sw::buffer<sw::shape<6>, sw::init::zeros>, running_mean));
    constexpr auto forward(const auto& x) const { return Forward{}(net(x), running_mean); }
  };
  template <class B>
  using model_of = model<B>;
};
template <class Forward>
using step = sw::train_step<models<Forward>::template model_of, mean_task, plan, mesh, sw::sgd<>>;
