// SPDX-License-Identifier: Apache-2.0
// wanted: a checkpoint of the first weight
// mistake: the vector has room for the rank's block alone
// names: 80
// names: 160
// names: whole|global
// run
#include "mlp.hpp"

int main() {
#ifdef SHARDWISE_FAIL
  std::vector<float> weight(16 * 10 / 2);
#else
  std::vector<float> weight(16 * 10);
#endif
  sw::launch<mesh>([&](auto& rank) {
    sw::executor<step> run(rank);
    run.initialise(1);
    run.gather_parameter(0, weight);
  });
}
