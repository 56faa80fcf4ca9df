// SPDX-License-Identifier: Apache-2.0
// Parameters copied between programs with different plans on a rank without peers: the blocks are other parts of the weights.
// expect: copy_parameters: a parameter is placed differently in the two programs
// expect(text): parameter number: 0; parameter: "net1.weight"; mesh: "tp" of 2; operands: float[16, 10] (tp: replicate), float[16, 10] (tp: shard<0>)
#include <shardwise/shardwise.hpp>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 10>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using plan = sw::plan<sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", sw::rowwise<tp>>>;
#ifdef SHARDWISE_FAIL
using judged = sw::plan<>;
#else
using judged = plan;
#endif
using train = sw::train_step<two_linears, task, plan, mesh>;
using judge = sw::forward_step<two_linears, task, judged, mesh>;

using rank = sw::fake_rank<mesh>;
void copy(sw::executor<judge, rank>& to, const sw::executor<train, rank>& from) { to.copy_parameters(from); }
