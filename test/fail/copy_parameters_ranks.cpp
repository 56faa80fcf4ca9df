// SPDX-License-Identifier: Apache-2.0
// Parameters copied between programs of meshes with different numbers of ranks.
// expect: copy_parameters: the two programs are of meshes with different numbers of ranks
#include <shardwise/shardwise.hpp>

#include "small_models.hpp"

template <int N>
struct tp : sw::axis<N> {};
template <int N>
struct dp : sw::axis<N> {};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<4, 10>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
#ifdef SHARDWISE_FAIL
using other = sw::mesh<dp<2>, tp<2>>;
#else
using other = sw::mesh<dp<1>, tp<2>>;
#endif
using train =
    sw::train_step<two_linears, task, sw::plan<sw::at<"net1", sw::colwise<tp<2>>>, sw::at<"net2", sw::rowwise<tp<2>>>>,
                   sw::mesh<tp<2>>>;
using judge = sw::forward_step<two_linears, task, sw::plan<>, other>;

void copy(sw::executor<judge>& to, const sw::executor<train>& from) { to.copy_parameters(from); }
