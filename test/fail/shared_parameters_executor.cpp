// SPDX-License-Identifier: Apache-2.0
// An executor of a program without parameters of its own, by itself.
// expect: executor: the program's parameters are those of another program's executor (with_parameters_of)
#include <shardwise/shardwise.hpp>

#include <shardwise/runtime/program/shared_parameters.hpp>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 8>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using train = sw::train_step<one_linear, task, sw::plan<>, mesh>;
using judge = sw::with_parameters_of<sw::forward_step<one_linear, task, sw::plan<>, mesh>, train>;

#ifdef SHARDWISE_FAIL
void evaluate(sw::thread_rank<mesh>& rank, sw::executor<train>&) { sw::executor<judge> test(rank); }
#else
void evaluate(sw::thread_rank<mesh>& rank, sw::executor<train>& run) { sw::executor<judge> test(rank, run); }
#endif
