// SPDX-License-Identifier: Apache-2.0
// wanted: a step of two inputs
// mistake: inputs are counted from 1
// names: input 2|number 2
// names: 2 inputs
// names: from 0|0 ?\.\. ?1|0 and 1
// run
#include "mlp.hpp"

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(1);
#ifdef SHARDWISE_FAIL
    run.set_input(1, std::vector<float>(320));
    run.set_input(2, std::vector<float>(320));
#else
    run.set_input(0, std::vector<float>(320));
    run.set_input(1, std::vector<float>(320));
#endif
  });
}
