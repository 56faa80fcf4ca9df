// SPDX-License-Identifier: Apache-2.0
// An embedding whose table is sharded by rows.
// expect: embedding: no rule admits these placements
// expect: where<shardwise::op::embedding, (shardwise::mesh<.*?>|mesh), shardwise::operand<shardwise::shape<100L?, 8L?>, shardwise::shard<0(, 1)?> ?>, shardwise::operand<shardwise::shape<4L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using ids = typed<std::int32_t, sw::shape<4>, mesh>;
#ifdef SHARDWISE_FAIL
using table = typed<float, sw::shape<100, 8>, mesh, sw::on<tp, sw::shard<0>>>;
#else
using table = typed<float, sw::shape<100, 8>, mesh, sw::on<tp, sw::shard<1>>>;
#endif
using y = decltype(sw::embedding(table{}, ids{}));
