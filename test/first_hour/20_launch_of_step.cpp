// SPDX-License-Identifier: Apache-2.0
// wanted: the step on all ranks
// mistake: launch is given the step instead of its mesh
// names: train_step|step
// names: mesh
// names: launch<mesh>|name the mesh|give
#include "mlp.hpp"

void train() {
#ifdef SHARDWISE_FAIL
  sw::launch<step>([](auto& rank) {
#else
  sw::launch<mesh>([](auto& rank) {
#endif
    sw::executor<step> run(rank);
    run.initialise(1);
  });
}
