// SPDX-License-Identifier: Apache-2.0
// An embedding whose table is sharded by rows and whose indices are sharded on the same axis.
// expect: embedding: no rule admits these placements
// expect: where<shardwise::op::embedding, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<100L?, 8L?>, shardwise::shard<0(, 1L?)?> ?>, shardwise::operand<int(32_t)?, shardwise::shape<4L?>, shardwise::shard<0(, 1L?)?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using table = typed<float, sw::shape<100, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#ifdef SHARDWISE_FAIL
using ids = typed<std::int32_t, sw::shape<4>, mesh, sw::on<tp, sw::shard<0>>>;
#else
using ids = typed<std::int32_t, sw::shape<4>, mesh>;
#endif
using y = decltype(sw::embedding(table{}, ids{}));
