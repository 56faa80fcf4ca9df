// SPDX-License-Identifier: Apache-2.0
// A consumer that trains: two steps of a small model over two ranks, and a wrong plan that is refused. Every way to get the package
// compiles it, and so does the test of warnings, which is why it names itself as users' programs do.

#include <shardwise/more_functions.hpp>
#include <shardwise/shardwise.hpp>

#include <cstdint>
#include <cstdio>
#include <vector>

namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct net : sw::module<net<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<8, 32>, up), (sw::layer_norm_module<32>, norm), (sw::dropout_module<1, 10>, drop),
                    (sw::linear<32, 4>, down));
  constexpr auto forward(const auto& x) const { return down(drop(sw::relu(norm(up(x))))); }
};

struct task {
  using points = sw::input_tensor<float, sw::shape<64, 8>, sw::on<dp, sw::shard<0>>>;
  using labels = sw::input_tensor<std::int32_t, sw::shape<64>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<points, labels>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& label) const {
    return sw::cross_entropy(model(x), label);
  }
};

#ifdef CONSUMER_WRONG
using plan = sw::plan<>;  // the parameters' gradients would miss a sum
#else
using plan = sw::plan<sw::data_parallel<dp>>;
#endif
using step = sw::train_step<net, task, plan, mesh, sw::clip_norm<sw::adamw<>>>;

#ifdef CONSUMER_WARNS
inline int shorter(long given) { return given; }
#endif

int main() {
  int wrong = 0;
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(1);
    std::vector<float> x(512);
    std::vector<std::int32_t> label(64);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i % 7) - 3.0F;
    for (std::size_t i = 0; i < label.size(); ++i) label[i] = static_cast<std::int32_t>(i % 4);
    sw::step_env env;
    env.lr = 1e-2;
    env.max_norm = 1;
    float loss[3]{};
    for (env.step = 1; env.step <= 2; ++env.step) {
      run.set_input(0, x);
      run.set_input(1, label);
      run.run(env);
      loss[env.step] = run.loss();
    }
    if (rank.index() == 0) {
      std::printf("losses %.6f, %.6f\n", static_cast<double>(loss[1]), static_cast<double>(loss[2]));
      wrong = loss[2] < loss[1] ? 0 : 1;
    }
  });
  return wrong;
}
