// SPDX-License-Identifier: Apache-2.0
// A build whose programs write themselves, and a source that does not include what writes.
// expect: executor: SHARDWISE_EXPLAIN is set
// expect: include <shardwise/shardwise.hpp> or <shardwise/cuda.cuh>
// expect(text): mesh: "dp" of 2

#define SHARDWISE_EXPLAIN 1
#include <shardwise/runtime/executor/executor.hpp>
#include <shardwise/runtime/fake/fake.hpp>
#ifndef SHARDWISE_FAIL
#include <shardwise/io/explanation/programs.hpp>
#endif

#include "small_step.hpp"

using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;

void use(sw::fake_rank<mesh>& rank) { sw::executor<step, sw::fake_rank<mesh>> run(rank); }
