// SPDX-License-Identifier: Apache-2.0
// Running sums of the last dim, which is sharded: each rank would begin anew.
// expect: call: no row of the custom operation's record admits these placements on a mesh axis
// expect(types): where<shardwise::detail::custom_tag<sums::running>, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 6L?>, shardwise::shard<1(, 1L?)?> ?> ?>
// expect(text): operation: running_sum

#include <custom_operations.hpp>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<4, 6>, mesh, sw::shard<1>>;
#else
using x = typed<float, sw::shape<4, 6>, mesh, sw::shard<0>>;
#endif
using y = decltype(sw::call<sums::running>(x{}));
