// SPDX-License-Identifier: Apache-2.0
// A trained backbone is frozen, and a new head trained behind it.

#include <cstdint>
#include <stdexcept>
#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct network : sw::module<network<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 32>, backbone), (sw::linear<32, 4>, head));
  constexpr auto forward(const auto& x) const { return head(sw::relu(backbone(x))); }
};
struct task {
  using points = sw::input_tensor<float, sw::shape<32, 8>, sw::on<dp, sw::shard<0>>>;
  using labels = sw::input_tensor<std::int32_t, sw::shape<32>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<points, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    return sw::cross_entropy(model(x), label);
  }
};
using step =
    sw::train_step<network, task, sw::plan<sw::data_parallel<dp>, sw::at<"backbone", sw::frozen>>, mesh, sw::adam<>>;

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(/*seed*/ 1);  // or the head alone: a backbone that is loaded comes by load, load_weights or set_parameter
    const std::vector<float> pretrained(32 * 8, 0.125F);
    run.set_parameter("backbone.weight", pretrained);
    std::vector<float> x(32 * 8);
    std::vector<std::int32_t> label(32);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * 37 % 101 / 50.F - 1;
    for (int i = 0; i < 32; ++i) label[i] = i % 4;
    run.set_input(0, x);
    run.set_input(1, label);
    const std::vector<float> head = run.full_parameter("head.weight");
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 10; ++env.step) run.run(env);
    check(run.full_parameter("backbone.weight") == pretrained, "the backbone's weights stay");
    check(run.full_parameter("head.weight") != head, "the head's do not");
    bool kept = true;
    try {
      run.full_state("backbone.weight", sw::moment::first);
    } catch (const std::exception&) {
      kept = false;
    }
    check(!kept, "no moments are kept for the backbone");
  });
}
