// SPDX-License-Identifier: Apache-2.0
// The step that wrong declarations of modules share: of a model of 8 features in, under no plan or the one given.
#pragma once

#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/runtime/host/backend.hpp>
#include <shardwise/vocabulary/axis.hpp>

namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::sum(m(x)); }
};
template <template <class> class Model, class Plan = sw::plan<>>
using step = sw::train_step<Model, task, Plan, mesh, sw::adam<>>;
