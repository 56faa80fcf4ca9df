// SPDX-License-Identifier: Apache-2.0
// A pass of one's own: a factor of a factor becomes one; what was between is then dead, and dropped.

#include <vector>

#include <shardwise/shardwise.hpp>

#include "check.hpp"
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, up), (sw::linear<16, 10>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x) * 4. * 0.5)); }
};
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};

struct merge_factors {
  using shardwise_pass = void;
  using preserves = sw::passes_list<sw::kept::outputs, sw::kept::updates, sw::kept::collectives>;
  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    for (int i = 0; i < g.node_count; ++i) {
      auto& n = g.nodes[i];
      while (n.op == sw::op_code::scale && g.nodes[n.in[0]].op == sw::op_code::scale) {
        n.f *= g.nodes[n.in[0]].f;
        n.in[0] = g.nodes[n.in[0]].in[0];
      }
    }
    return {};
  }
};
template <class... Passes>
using step = sw::train_step<perceptron, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>, sw::pipeline<Passes...>>;

constexpr int factors(const auto& graph) {
  int n = 0;
  for (int i = 0; i < graph.node_count; ++i) n += graph.nodes[i].op == sw::op_code::scale;
  return n;
}
static_assert(factors(step<merge_factors>::program) == factors(step<>::program) - 2);  // one forward, one backward

template <class Step>
std::vector<double> losses() {
  std::vector<double> all;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(32 * 10), y(32 * 10);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * 37 % 19 / 9.5F - 1, y[i] = x[i] * x[i];
    run.set_input(0, x);
    run.set_input(1, y);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 20; ++env.step) {
      run.run(env);
      if (rank.index() == 0) all.push_back(run.loss());
    }
  });
  return all;
}

int main() { check(losses<step<>>() == losses<step<merge_factors>>(), "the losses stay"); }
