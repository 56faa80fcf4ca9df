// SPDX-License-Identifier: Apache-2.0
// Two layers whose output features are split, one behind the other: compiled with -DWRONG the compiler says what the second one misses.

#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, up), (sw::linear<16, 10>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x))); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<32, 10>>>;
  constexpr auto operator()(const auto& model, const auto& x) const { return sw::mean(model(x)); }
};
#ifdef WRONG
using plan = sw::plan<sw::at<"up", sw::colwise<tp>>, sw::at<"down", sw::colwise<tp>>>;
#else
using plan = sw::plan<sw::at<"up", sw::colwise<tp>>, sw::at<"down", sw::colwise<tp, 1, sw::input<sw::shard<1>>>>>;
#endif
using step = sw::train_step<perceptron, task, plan, mesh>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    run.set_input(0, std::vector<float>(32 * 10, 1));
    sw::step_env env;
    env.step = 1;
    env.lr = 0.01;
    run.run(env);
    const float first = run.loss();
    run.run(env);
    check(run.loss() < first, "the mended plan trains");
  });
}
