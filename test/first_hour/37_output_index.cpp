// SPDX-License-Identifier: Apache-2.0
// wanted: the predictions beside the loss
// mistake: output 1 is asked of a step whose only output is the loss
// names: output 1|number 1
// names: 1 outputs?|one output
// names: 0 ?\.\. ?0|output\(0\)|loss|from 0
// run
#include "mlp.hpp"

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(1);
    run.set_input(0, std::vector<float>(320, 1.F));
    run.set_input(1, std::vector<float>(320, 1.F));
    sw::step_env env;
    env.lr = 0.01;
    env.step = 1;
    run.run(env);
#ifdef SHARDWISE_FAIL
    const auto answers = run.output(1);
#else
    const auto answers = run.output(0);
#endif
    (void)answers;
  });
}
