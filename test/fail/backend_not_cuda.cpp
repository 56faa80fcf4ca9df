// SPDX-License-Identifier: Apache-2.0
// A step planned for the host's kernels is given to a rank on a GPU.
// expect: executor: the step's memory is planned for the host's kernels, and this rank is a GPU
// expect: shardwise::host_backend

#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>
#include <shardwise/runtime/device_backend.hpp>

#include "typed.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using plan = sw::plan<sw::data_parallel<dp>>;
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
#ifdef SHARDWISE_FAIL
using step = sw::train_step<model, task, plan, mesh, sw::adam<>, sw::pipeline<>, float, sw::host_backend>;
#else
using step = sw::train_step<model, task, plan, mesh, sw::adam<>, sw::pipeline<>, float, sw::cuda_backend>;
#endif
constexpr bool ok = sw::checked_device_step<step>::ok;
