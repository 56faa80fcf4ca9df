// SPDX-License-Identifier: Apache-2.0
// A training loop: AdamW with clipping and a group without decay, a schedule, dropout, a metric, evaluation on other data.

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <vector>

#include <shardwise/runtime/program/shared_parameters.hpp>
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
inline constexpr int rows = 64, features = 2, classes = 3;

template <class Bound = sw::unbound>
struct classifier : sw::module<classifier<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<features, 32>, in), (sw::dropout_module<1, 20>, drop),
                    (sw::linear<32, classes>, out));
  constexpr auto forward(const auto& x) const { return out(drop(sw::gelu(in(x)))); }
};

struct task {  // the loss first; what else is named is a metric
  using points = sw::input_tensor<float, sw::shape<rows, features>, sw::on<dp, sw::shard<0>>>;
  using labels = sw::input_tensor<std::int32_t, sw::shape<rows>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<points, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    const auto logits = model(x);
    const auto right = sw::cast<float>(sw::eq(sw::argmax<-1>(logits), label));
    return sw::outputs(sw::named<"loss">(sw::cross_entropy(logits, label)), sw::named<"accuracy">(sw::mean(right)));
  }
};

using plan = sw::plan<sw::data_parallel<dp>, sw::param_group<"no_decay", "bias">>;
using step = sw::train_step<classifier, task, plan, mesh, sw::clip_norm<sw::adamw<>>>;
// The same model and task; its modules evaluate, by the weights of the executor that trains.
using judge = sw::with_parameters_of<sw::forward_step<classifier, task, plan, mesh>, step>;

// Which third of the turn a point lies in; equal on all ranks, each of which takes its own rows of it.
struct data {
  std::vector<float> x = std::vector<float>(rows * features);
  std::vector<std::int32_t> label = std::vector<std::int32_t>(rows);
  explicit data(int batch) {
    for (int i = 0; i < rows; ++i) {
      const double angle = 2 * std::numbers::pi * std::fmod((batch * rows + i) * 0.618034, 1.0);
      x[2 * i] = static_cast<float>(std::cos(angle));
      x[2 * i + 1] = static_cast<float>(std::sin(angle));
      label[i] = static_cast<int>(3 * angle / (2 * std::numbers::pi));
    }
  }
};
template <class Program>
void feed(Program& program, const data& d) {
  program.set_input(0, d.x);
  program.set_input(1, d.label);
}

// Linear warm-up, then half a cosine: a rate is a number of the run, so a schedule is a function of the step.
double rate_at(int s, int steps) {
  const double warm = 10, largest = 0.02;
  return s < warm ? largest * s / warm : largest * 0.5 * (1 + std::cos(std::numbers::pi * (s - warm) / (steps - warm)));
}

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    sw::executor<judge> test(rank, run);
    sw::env_of<step> env;  // the numbers of a run, and of the plan's groups by name
    env.weight_decay = 0.01;
    env.group<"no_decay">().weight_decay = 0;
    env.max_norm = 1;
    const int steps = 80;
    for (int s = 1; s <= steps; ++s) {
      env.step = s;  // from 1; random draws depend on it
      env.lr = rate_at(s, steps);
      feed(run, data(s));
      run.run(env);
      if (s % 20 != 0) continue;
      feed(test, data(1000));
      test.run({});
      if (rank.index() == 0)
        std::printf("step %2d  loss %.3f  accuracy %.2f  held out: loss %.3f  accuracy %.2f\n", s,
                    static_cast<double>(run.loss()), static_cast<double>(run.template output<"accuracy">().item()),
                    static_cast<double>(test.template output<"loss">().item()),
                    static_cast<double>(test.template output<"accuracy">().item()));
    }
  });
}
