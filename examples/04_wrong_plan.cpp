// SPDX-License-Identifier: Apache-2.0
// A wrong plan does not compile. Build this with -DSHARDWISE_FAIL, and the error is the sentence below; without, it is the right plan.
// expect: colwise: the input must be replicate or reduced on the style's axis; gather it with the option input<shard<d>>, or with prepare_input, or redistribute before the call
// expect(text): style: colwise<tp>; operand: float[32, 16] (

#include <cstdio>

#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};

#ifdef SHARDWISE_FAIL
using second = sw::colwise<tp>;  // would take the shards that net1 leaves for whole rows
#else
using second = sw::rowwise<tp>;  // takes shards of features, and sums what the ranks make of them
#endif
using plan = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>, sw::at<"net2", second>>;

// Also refused, each by a sentence of its own:
//   sw::at<"net3", sw::colwise<tp>>      a path that names nothing; the error names the nearest one
//   sw::at<"net1", sw::colwise<pp>>      an axis that the mesh does not have
//   sw::at<"norm", sw::rowwise<tp>>      a style on a module that it does not fit, as of a layer norm
//   sw::plan<sw::colwise<tp>>            a style without a module
//   sw::plan<> on a split batch          parameters whose gradients nobody would sum

struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
using step = sw::train_step<mlp, task, plan, mesh, sw::adam<>>;

int main() {
  std::printf("the right plan sends %lld bytes over dp and %lld over tp in a step\n",
              static_cast<long long>(step::comm_bytes<dp>), static_cast<long long>(step::comm_bytes<tp>));
}
