// SPDX-License-Identifier: Apache-2.0
// wanted: a training step
// mistake: initialise is not called
// names: parameter
// names: value|initial
// names: initialise|set_parameter
// run
#include "mlp.hpp"

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
#ifndef SHARDWISE_FAIL
    run.initialise(1);
#endif
    run.set_input(0, std::vector<float>(320, 1.F));
    run.set_input(1, std::vector<float>(320, 1.F));
    sw::step_env env;
    env.lr = 0.01;
    env.step = 1;
    run.run(env);
  });
}
