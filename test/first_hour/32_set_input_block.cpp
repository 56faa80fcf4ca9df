// SPDX-License-Identifier: Apache-2.0
// wanted: a step on a batch that every rank has loaded its part of
// mistake: set_input is given the rank's own rows
// names: 160
// names: 320
// names: whole
// run
#include "mlp.hpp"

int main() {
  sw::launch<mesh>([](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(1);
#ifdef SHARDWISE_FAIL
    run.set_input(0, std::vector<float>(160));
#else
    run.set_input(0, std::vector<float>(320));
#endif
  });
}
