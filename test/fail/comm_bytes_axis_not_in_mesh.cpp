// SPDX-License-Identifier: Apache-2.0
// A step is asked for its communication on an axis that its mesh does not have.
// expect: placement: the mesh axis named here is not an axis of the tensor's mesh

#include "small_step.hpp"

struct tp : sw::axis<2> {};
using step = sw::train_step<one_linear, mean_task, plan, mesh>;
#ifdef SHARDWISE_FAIL
constexpr auto bytes = step::comm_bytes<tp>;
#else
constexpr auto bytes = step::comm_bytes<dp>;
#endif
