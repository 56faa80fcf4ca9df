// SPDX-License-Identifier: Apache-2.0
// wanted: one step with rate 0.01
// mistake: run is given the rate itself
// names: run
// names: step_env
// names: \blr\b|env
#include "mlp.hpp"

void train() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(1);
    run.set_input(0, std::vector<float>(320));
    run.set_input(1, std::vector<float>(320));
#ifdef SHARDWISE_FAIL
    run.run(0.01);
#else
    sw::step_env env;
    env.lr = 0.01;
    env.step = 1;
    run.run(env);
#endif
  });
}
