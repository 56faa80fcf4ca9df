// SPDX-License-Identifier: Apache-2.0
// The executor of a model.
// expect: executor: what is given where the program belongs is none
// expect: make one of a model with train_step or forward_step
// expect(g++): one_linear<
// expect(clang): one_linear<

#include <shardwise/runtime/executor/executor.hpp>
#include <shardwise/runtime/fake/fake.hpp>
#include <shardwise/runtime/threads/threads.hpp>

#include "small_step.hpp"

using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;

#ifdef SHARDWISE_FAIL
using mesh_type = sw::program_traits<one_linear<>>::mesh_type;
#else
using mesh_type = sw::program_traits<step>::mesh_type;
#endif
constexpr int ranks = mesh_type::size;
