// SPDX-License-Identifier: Apache-2.0
// A tracked run of a step in which a module is called with a tensor of which a row was written, and a part of which is written later.
// expect: run_tracked: a module is called with a tensor of which a view has been written in place

#include <shardwise/module/tracker/runs.hpp>
#include <shardwise/shardwise.hpp>

#include "typed.hpp"

struct tp : sw::axis<1> {};
using mesh = sw::mesh<tp>;

// Reads nothing of its operand.
template <class Bound = sw::unbound>
struct ones : sw::module<ones<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::parameter<sw::shape<4, 8>, sw::init::ones>, weight));
  constexpr auto forward(const auto&) const { return 2.f * weight; }
};
template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (ones<>, inner));
  constexpr auto forward(const auto& x) const {
    const auto h = sw::relu(x);
    const auto row = sw::narrow<0, 1, 1>(h);
    sw::mul_(row, 2);
#ifdef SHARDWISE_FAIL
    const auto w = inner(h);
#else
    const auto w = inner(row);
#endif
    sw::mul_(row, 3);
    return w * h;
  }
};
template <class B>
using net_model = net<B>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::sum(model(x)); }
};
using step = sw::train_step<net_model, task, sw::plan<>, mesh, sw::sgd<>>;
void run(sw::module_tracker& tracker, sw::executor<step>& one) { sw::run_tracked(tracker, one, sw::step_env{}); }
