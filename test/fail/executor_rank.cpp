// SPDX-License-Identifier: Apache-2.0
// A rank of another mesh.
// expect: executor: it needs a rank of its program's own mesh
// expect: executor<step, std::remove_reference_t<decltype(rank)>>
// expect(g++): other
// expect(clang): other
// expect(text): given: thread_rank<mesh<other>>; mesh: "dp" of 2

#include <shardwise/runtime/executor/executor.hpp>
#include <shardwise/runtime/fake/fake.hpp>
#include <shardwise/runtime/threads/threads.hpp>

#include "small_step.hpp"

using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>>;

struct other : sw::axis<2> {};
#ifdef SHARDWISE_FAIL
using rank_type = sw::thread_rank<sw::mesh<other>>;
#else
using rank_type = sw::thread_rank<mesh>;
#endif
void use(rank_type& rank) { sw::executor<step> run(rank); }
