// SPDX-License-Identifier: Apache-2.0
// A step is asked for its communication on an axis that its mesh does not have.
// expect: placement: the mesh axis named here is not an axis of the tensor's mesh

#include <shardwise/module/layers.hpp>
#include <shardwise/module/train_step.hpp>

#include "typed.hpp"

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using plan = sw::plan<sw::data_parallel<dp>>;
struct tp : sw::axis<2> {};
template <class Bound = sw::unbound>
struct model : sw::module<model<Bound>, Bound> {
  BOOST_HANA_DEFINE_STRUCT(model, (sw::linear<8, 6, sw::child<Bound, 0>>, net));
  constexpr auto forward(const auto& x) const { return net(x); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>, sw::on<dp, sw::shard<0>>>>;
  constexpr auto operator()(const auto& m, const auto& x) const { return sw::mean(m(x)); }
};
using step = sw::train_step<model, task, plan, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step::comm_bytes<tp>;
#else
constexpr auto bytes = step::comm_bytes<dp>;
#endif
