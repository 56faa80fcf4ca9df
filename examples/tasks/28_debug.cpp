// SPDX-License-Identifier: Apache-2.0
// A tensor in the middle of a model is looked at, and its gradient; the operation from which a NaN comes is found.

#include <cstdio>
#include <stdexcept>
#include <string>
#include <vector>

#include <shardwise/io/print.hpp>
#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
using batch = sw::dtensor_of<float, sw::shape<4, 3>, mesh, sw::on<dp, sw::shard<0>>>;

template <class Bound = sw::unbound>
struct network : sw::module<network<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<3, 2>, up), (sw::linear<2, 1>, down));
  constexpr auto forward(const auto& x) const { return down(sw::log(up(x))); }
};
struct task {
  using inputs = sw::inputs<sw::input_like<batch>>;
  constexpr auto operator()(const auto& model, const auto& x) const {
    const auto middle = model.up(x);  // the model's own parts, one by one
    return sw::outputs(sw::named<"loss">(sw::mean(model.down(sw::log(middle)))), sw::named<"middle">(middle));
  }
};
struct rest {  // of the model, behind the tensor whose gradient is wanted
  constexpr auto operator()(const auto& middle, const auto& weight) const {
    return sw::mean(sw::linear_product(sw::log(middle), weight));
  }
};
using plan = sw::plan<sw::data_parallel<dp>>;
using step = sw::train_step<network, task, plan, mesh, sw::sgd<>>;

int main() {
  std::string said;
  try {
    sw::launch<mesh>([](auto& rank) {
      sw::executor<step> run(rank);
      run.initialise(/*seed*/ 1);
      run.set_parameter("up.bias", std::vector<float>{50, 5});  // nothing is negative yet
      const std::vector<float> xs{1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
      run.set_input(0, xs);
      sw::step_env env;
      env.lr = 0;
      env.step = 1;

      const sw::eager on(rank);
      sw::bind_eager<network, plan, mesh> model;
      sw::initialise(model, on, /*seed*/ 1);
      sw::load_parameters(model, on, run);
      const auto middle = model.up(batch::distribute(on, xs));
      if (rank.index() == 0) std::printf("%s\n", sw::to_string(middle).c_str());
      const auto [loss, d_middle, d_weight] = sw::value_and_grad<rest, 0, 1>(middle, model.down.weight);
      if (rank.index() == 0) std::printf("%s\n", sw::to_string(d_middle).c_str());
      check(d_middle.to_local().size() == 4, "it has a gradient");

      run.run(env);
      const auto compiled = run.output<"middle">();
      const auto at_once = middle.to_local();
      for (std::size_t i = 0; i < at_once.size(); ++i)
        check(at_once[i] == compiled[i], "the values are the compiled step's");

      sw::executor<step> watched(rank, sw::executor_checks::finite);
      watched.copy_parameters(run);
      watched.set_parameter("up.bias", std::vector<float>{-50, 5});  // the logarithm's fault from here on
      watched.set_input(0, xs);
      watched.run(env);
    });
  } catch (const std::exception& e) {
    said = e.what();
  }
  std::printf("%s\n", said.c_str());
  check(said.find("log") != std::string::npos, "the logarithm is named");
}
