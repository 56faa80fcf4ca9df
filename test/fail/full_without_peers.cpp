// SPDX-License-Identifier: Apache-2.0
// A whole tensor asked of a rank that has no peers to take the other blocks from.
// expect: exchange
#include "grouped_step.hpp"

using made = step<>;
#ifdef SHARDWISE_FAIL
using rank = sw::fake_rank<mesh>;
#else
using rank = sw::thread_rank<mesh>;
#endif
void use(sw::executor<made, rank>& ex) { ex.full_parameter("net1.weight"); }
