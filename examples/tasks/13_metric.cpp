// SPDX-License-Identifier: Apache-2.0
// Accuracy beside the loss, of the same forward pass.

#include <cmath>
#include <cstdint>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;
inline constexpr int rows = 32, classes = 3;

template <class Bound = sw::unbound>
struct classifier : sw::module<classifier<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<2, 16>, in), (sw::linear<16, classes>, out));
  constexpr auto forward(const auto& x) const { return out(sw::relu(in(x))); }
};
struct task {
  using points = sw::input_tensor<float, sw::shape<rows, 2>, sw::on<dp, sw::shard<0>>>;
  using labels = sw::input_tensor<std::int32_t, sw::shape<rows>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<points, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    const auto logits = model(x);
    const auto right = sw::cast<float>(sw::eq(sw::argmax<-1>(logits), label));
    return sw::outputs(sw::named<"loss">(sw::cross_entropy(logits, label)), sw::named<"accuracy">(sw::mean(right)),
                       sw::named<"logits">(logits));
  }
};
using step = sw::train_step<classifier, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(rows * 2);
    std::vector<std::int32_t> label(rows);
    for (int i = 0; i < rows; ++i) {
      x[2 * i] = std::cos(1.F * i), x[2 * i + 1] = std::sin(1.F * i);
      label[i] = x[2 * i] > 0.5F ? 2 : x[2 * i + 1] > 0;
    }
    run.set_input(0, x);
    run.set_input(1, label);
    sw::step_env env;
    env.lr = 0.02;
    for (env.step = 1; env.step <= 40; ++env.step) {
      run.run(env);
      const std::vector<float> logits = run.full_output<"logits">();  // of all rows, on every rank
      int right = 0;
      for (int i = 0; i < rows; ++i) {
        int best = 0;
        for (int k = 1; k < classes; ++k) best = logits[i * classes + k] > logits[i * classes + best] ? k : best;
        right += best == label[i];
      }
      check(run.output<"accuracy">().item() == 1.F * right / rows, "the accuracy is what is counted from the logits");
    }
    check(run.output<"accuracy">().item() > 0.9F, "it learns");
  });
}
