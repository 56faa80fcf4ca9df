// SPDX-License-Identifier: Apache-2.0
// Values are computed again behind the pass that makes batches of collectives, which replays would tear apart.
// expect: pipeline: passes that are applied already must be applied after this one; list it before those
// expect(types): <shardwise::recompute, ?shardwise::pass_order::must_precede<shardwise::batch_collectives> ?>
// expect(text): pass: recompute; must_precede: batch_collectives

#include "fail_step.hpp"

using checkpointed = sw::plan<sw::fully_shard<dp>, sw::checkpoint>;
using written = sw::detail::step_graph<model, task, checkpointed, mesh, sw::adam<>, sw::pipeline<>, float>::written;
#ifdef SHARDWISE_FAIL
using batched = sw::apply_pass<sw::batch_collectives, written>;
using replayed = sw::apply_pass<sw::recompute, batched>;
#else
using recomputed = sw::apply_pass<sw::recompute, written>;
using replayed = sw::apply_pass<sw::batch_collectives, recomputed>;
#endif
constexpr int nodes = replayed::value.node_count;
