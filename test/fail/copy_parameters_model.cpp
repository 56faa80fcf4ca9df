// SPDX-License-Identifier: Apache-2.0
// Parameters copied between programs of different models: as many, but others.
// expect: copy_parameters: the two programs do not have the same parameters
#include <shardwise/shardwise.hpp>

#include "small_models.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
template <int Features>
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, Features>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using train = sw::train_step<one_linear, task<8>, sw::plan<>, mesh>;
#ifdef SHARDWISE_FAIL
using judge = sw::forward_step<one_norm, task<8>, sw::plan<>, mesh>;
#else
using judge = sw::forward_step<one_linear, task<8>, sw::plan<>, mesh>;
#endif

void copy(sw::executor<judge>& to, const sw::executor<train>& from) { to.copy_parameters(from); }
