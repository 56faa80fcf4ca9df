// SPDX-License-Identifier: Apache-2.0
// A pass that must come before the batches of collectives that the plan implies, listed behind the pass that batches come before.
// expect: pipeline: this pass must be applied before implied_pass<...>, which plan_entry<...> of the plan implies
// expect(types): <shardwise::merge_common, ?shardwise::pass_order::must_precede<shardwise::schedule_comm_wait ?>, ?shardwise::implied_pass<shardwise::batch_collectives ?>, ?shardwise::plan_entry<shardwise::fully_shard<dp ?> ?>
// expect(text): pass: merge_common; must_precede: schedule_comm_wait; implied_pass: batch_collectives; plan_entry: fully_shard<dp>

#include <shardwise/pass/communication/waits.hpp>
#include <shardwise/pass/simplify/simplify.hpp>

#include "fail_step.hpp"

using in_shards = sw::plan<sw::fully_shard<dp>>;
#ifdef SHARDWISE_FAIL
using passes = sw::pipeline<sw::schedule_comm_wait, sw::merge_common>;
#else
using passes = sw::pipeline<sw::merge_common, sw::schedule_comm_wait>;
#endif
using stepped = sw::train_step<model, task, in_shards, mesh, sw::adam<>, passes>;
constexpr int nodes = stepped::program.node_count;
