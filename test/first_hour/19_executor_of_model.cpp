// SPDX-License-Identifier: Apache-2.0
// wanted: a run of the model
// mistake: the executor is given the model instead of a step of it
// names: mlp
// names: train_step|program
// names: forward_step|train_step
#include "mlp.hpp"

void train() {
  sw::launch<mesh>([](auto& rank) {
#ifdef SHARDWISE_FAIL
    sw::executor<mlp<>> run(rank);
#else
    sw::executor<step> run(rank);
#endif
    run.initialise(1);
  });
}
