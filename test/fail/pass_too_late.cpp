// SPDX-License-Identifier: Apache-2.0
// A pass stands after one that must be applied after it.
// expect: passes that are applied already must be applied after this one
// expect(types): <fuse, ?shardwise::pass_order::must_precede<schedule> ?>
// expect(text): pass: fuse; must_precede: schedule

#include "small_step.hpp"

struct fuse : unchanged {};
struct schedule : unchanged {
  using apply_after = sw::passes_list<fuse>;
};
#ifdef SHARDWISE_FAIL
using passes = sw::pipeline<schedule, fuse>;
#else
using passes = sw::pipeline<fuse, schedule>;
#endif
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, passes>;
constexpr int nodes = step::program.node_count;
