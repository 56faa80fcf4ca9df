// SPDX-License-Identifier: Apache-2.0
// One training, as threads of a process or, compiled with -DBY_MPI by mpicxx, as processes of mpirun; prints its last loss, all bits of it.

#include <cstdio>
#include <type_traits>
#include <vector>

#ifdef BY_MPI
#include <shardwise/runtime/mpi/mpi.hpp>
#endif
#include <shardwise/shardwise.hpp>
namespace sw = shardwise;

struct dp : sw::axis<2> {};
using mesh = sw::mesh<dp>;

template <class Bound = sw::unbound>
struct perceptron : sw::module<perceptron<Bound>, Bound> {
  SHARDWISE_MEMBERS(Bound, (sw::linear<10, 16>, up), (sw::linear<16, 10>, down));
  constexpr auto forward(const auto& x) const { return down(sw::relu(up(x))); }
};
struct task {
  using batch = sw::input_tensor<float, sw::shape<32, 10>, sw::on<dp, sw::shard<0>>>;
  using inputs = sw::inputs<batch, batch>;
  constexpr auto operator()(const auto& model, const auto& x, const auto& y) const {
    const auto error = model(x) - y;
    return sw::mean(error * error);
  }
};
using step = sw::train_step<perceptron, task, sw::plan<sw::data_parallel<dp>>, mesh, sw::adam<>>;

int main(int argc, char** argv) {
  const auto train = [](auto& rank) {
    sw::executor<step, std::remove_reference_t<decltype(rank)>> run(rank);
    run.initialise(/*seed*/ 1);
    std::vector<float> x(32 * 10), y(32 * 10);
    for (std::size_t i = 0; i < x.size(); ++i) x[i] = i * 37 % 19 / 9.5F - 1, y[i] = x[i] * x[i];
    run.set_input(0, x);
    run.set_input(1, y);
    sw::step_env env;
    env.lr = 0.01;
    for (env.step = 1; env.step <= 20; ++env.step) run.run(env);
    if (rank.index() == 0) std::printf("%a\n", run.loss());
  };
#ifdef BY_MPI
  return sw::launch_mpi<mesh>(argc, argv, train);
#else
  return sw::launch<mesh>(argc, argv, train);
#endif
}
