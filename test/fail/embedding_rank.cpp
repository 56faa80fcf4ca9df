// SPDX-License-Identifier: Apache-2.0
// An embedding whose table is a vector.
// expect: embedding: the table must have rank 2 (rows, features)
// expect: where<shardwise::op::embedding, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<100L?>, shardwise::replicate ?>, shardwise::operand<int(32_t)?, shardwise::shape<4L?>, shardwise::replicate ?> ?>
// expect(text): operation: embedding; operands: float[100] (tp: replicate), std::int32_t[4] (tp: replicate); mesh: "tp" of 2; rank: 1; required rank: 2

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using ids = typed<std::int32_t, sw::shape<4>, mesh>;
#ifdef SHARDWISE_FAIL
using table = typed<float, sw::shape<100>, mesh>;
#else
using table = typed<float, sw::shape<100, 1>, mesh>;
#endif
using y = decltype(sw::embedding(table{}, ids{}));
