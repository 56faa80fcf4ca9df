// SPDX-License-Identifier: Apache-2.0
// A two-layer MLP under tensor and data parallelism: the plan, its costs as constants, and twenty steps on four ranks.

#include <cstdio>
#include <vector>

#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};  // a mesh axis is a named type: errors print its name
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;

template <class Bound = sw::unbound>  // a module is a class template over its binding by a plan
struct mlp : sw::module<mlp<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, net1), (sw::linear<16, 10>, net2));
  constexpr auto forward(const auto& x) const { return net2(sw::relu(net1(x))); }
};

using plan = sw::plan<sw::data_parallel<dp>, sw::at<"net1", sw::colwise<tp>>,
                      sw::at<"net2", sw::rowwise<tp>>>;  // a wrong path, style or order does not compile

struct task {  // what a step is fed and what it minimises
  using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};

using step = sw::train_step<mlp, task, plan, mesh, sw::adam<>>;
static_assert(step::comm_bytes<tp> <= 1'400);  // bytes that the busiest rank sends: a constant
static_assert(step::peak_bytes <= 20'000);     // memory of a rank, all of it: a constant

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(32 * 10), y(32 * 10);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i * 37 % 19) / 9.5F - 1;
      y[i] = x[i] * x[i];
    }
    sw::step_env env;
    env.lr = 0.01;
    for (int s = 1; s <= 20; ++s) {
      env.step = s;
      run.set_input(0, x);
      run.set_input(1, y);
      run.run(env);
      if (rank.index() == 0 && s % 5 == 0) std::printf("step %2d  loss %.6f\n", s, static_cast<double>(run.loss()));
    }
  });
  std::printf("bytes sent per step by the busiest rank: dp %lld, tp %lld; peak memory of a rank: %lld bytes\n",
              static_cast<long long>(step::comm_bytes<dp>), static_cast<long long>(step::comm_bytes<tp>),
              static_cast<long long>(step::peak_bytes));
}
