// SPDX-License-Identifier: Apache-2.0
// AdamW that decays weights but neither biases nor norms, and a rate of its own for the head.

#include <cmath>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct one : sw::axis<1> {};
using mesh = sw::mesh<one>;

template <class Bound = sw::unbound>
struct network : sw::module<network<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, body), (sw::layer_norm_module<16>, norm), (sw::linear<16, 4>, head));
  constexpr auto forward(const auto& x) const { return head(norm(sw::relu(body(x)))); }
};
struct task {
  using inputs = sw::inputs<sw::input_tensor<float, sw::shape<8, 10>>>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    return sw::mean(model(x)) * 0.;
  }  // no gradient but zeros
};
using plan = sw::plan<sw::param_group<"no_decay", "bias">, sw::at<"norm", sw::param_group<"no_decay">>,
                      sw::at<"head", sw::param_group<"head", "weight">>>;
using step = sw::train_step<network, task, plan, mesh, sw::adamw<>>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    run.set_input(0, std::vector<float>(8 * 10, 1));
    const auto body = run.full_parameter("body.weight"), bias = run.full_parameter("body.bias"),
               norm = run.full_parameter("norm.weight"), head = run.full_parameter("head.weight");
    sw::env_of<step> env;
    env.step = 1;
    env.lr = 0.1;
    env.weight_decay = 0.1;
    env.group<"no_decay">().weight_decay = 0;
    env.group<"head">().lr = 0.2;
    run.run(env);
    check(run.full_parameter("body.bias") == bias && run.full_parameter("norm.weight") == norm, "biases and norms stay");
    for (std::size_t i = 0; i < body.size(); ++i)
      check(std::fabs(run.parameter("body.weight")[i] - body[i] * 0.99F) < 1e-6F, "weights shrink");
    for (std::size_t i = 0; i < head.size(); ++i)
      check(std::fabs(run.parameter("head.weight")[i] - head[i] * 0.98F) < 1e-6F, "the head's by its own rate");
  });
}
