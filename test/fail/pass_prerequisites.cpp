// SPDX-License-Identifier: Apache-2.0
// A pass stands in a pipeline without the one that it needs.
// expect: are the prerequisites of this one but are not applied
// expect(types): <schedule, ?shardwise::pass_order::missing_prerequisite<fuse>, ?shardwise::pass_order::applied_passes<other> ?>
// expect(text): pass: schedule; missing_prerequisite: fuse; applied_passes: other

#include "small_step.hpp"

struct other : unchanged {};
struct fuse : unchanged {};
struct schedule : unchanged {
  using prerequisites = sw::passes_list<fuse>;
};
#ifdef SHARDWISE_FAIL
using passes = sw::pipeline<other, schedule, fuse>;
#else
using passes = sw::pipeline<other, fuse, schedule>;
#endif
using step = sw::train_step<one_linear, mean_task, plan, mesh, sw::adam<>, passes>;
constexpr int nodes = step::program.node_count;
