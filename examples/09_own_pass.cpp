// SPDX-License-Identifier: Apache-2.0
// Passes over a whole train step: bucketed gradients, collectives beside kernels, fused kernels, and a pass of one's own.
// Prints what the step costs and trains the same model without and with them: the losses are equal.

#include <cmath>
#include <cstdio>
#include <vector>

#include <shardwise/io/explain.hpp>
#include <shardwise/pass/fuse/fuse.hpp>
#include <shardwise/pass/communication/fuse_collectives.hpp>
#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct layer : sw::module<layer<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<32, 32>, fc));
  constexpr auto forward(const auto& x) const { return sw::relu(sw::relu(fc(x))); }  // one too many
};
template <class Bound>
using layer_of = layer<Bound>;
template <class Bound = sw::unbound>
struct stack : sw::module<stack<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::repeat<4, layer_of>, layers), (sw::linear<32, 32>, head));
  constexpr auto forward(const auto& x) const { return head(layers(x)); }
};

struct task {
  using batch = sw::input_tensor<float, sw::shape<64, 32>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};

// A pass is a function of a graph. This one reads around a relu of a relu; the second is then dead, and dropped.
struct merge_relus {
  using shardwise_pass = void;
  using preserves = sw::passes_list<sw::kept::outputs, sw::kept::updates, sw::kept::collectives>;  // checked when it has run

  template <class Graph>
  static constexpr sw::finding apply(Graph& g) {
    const auto is_relu = [&](int i) { return g.nodes[i].op == sw::op_code::relu; };
    for (int i = 0; i < g.node_count; ++i)
      for (int k = 0; k < g.nodes[i].inputs; ++k)
        while (is_relu(g.nodes[i].in[k]) && is_relu(g.nodes[g.nodes[i].in[k]].in[0]))
          g.nodes[i].in[k] = g.nodes[g.nodes[i].in[k]].in[0];
    return {};
  }
};

template <class... Passes>
using step = sw::train_step<stack, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>, sw::pipeline<Passes...>>;
using plain = step<>;
using better = step<merge_relus, sw::comm_fusion_in_place<25>, sw::schedule_comm_wait, sw::fuse_kernels>;
// sw::pipeline<sw::schedule_comm_wait, sw::comm_fusion_in_place<25>> does not compile: the first must be applied after.

static_assert(plain::traffic.collectives == 11 && better::traffic.collectives < plain::traffic.collectives);
static_assert(better::total_comm_bytes() == plain::total_comm_bytes());

template <class Step>
std::vector<double> losses(int steps) {
  std::vector<double> all;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<Step> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(64 * 32), y(64 * 32);
    for (std::size_t i = 0; i < x.size(); ++i) {
      x[i] = static_cast<float>(i * 37 % 19) / 9.5F - 1;
      y[i] = x[i] * x[i];
    }
    run.set_input(0, x);
    run.set_input(1, y);
    sw::step_env env;
    env.lr = 0.001;
    for (env.step = 1; env.step <= steps; ++env.step) {
      run.run(env);
      if (rank.index() == 0) all.push_back(static_cast<double>(run.loss()));
    }
  });
  return all;
}

int main() {
  std::printf("%s\n", sw::explain<better>({"dp"}).c_str());
  const std::vector<double> a = losses<plain>(20), b = losses<better>(20);
  double apart = 0;
  for (std::size_t s = 0; s < a.size(); ++s) {
    apart = std::fmax(apart, std::fabs(a[s] - b[s]));
    if (s % 5 == 4) std::printf("step %2d  loss %.6f, with passes %.6f\n", static_cast<int>(s) + 1, a[s], b[s]);
  }
  return apart < 1e-5 ? 0 : 1;
}
