// SPDX-License-Identifier: Apache-2.0
// An embedding whose indices are floats.
// expect: this operation needs int32 indices
// expect: where<shardwise::op::embedding, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<100L?, 8L?>, shardwise::replicate ?>, shardwise::operand<float, shardwise::shape<4L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using table = typed<float, sw::shape<100, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using ids = typed<float, sw::shape<4>, mesh>;
#else
using ids = typed<std::int32_t, sw::shape<4>, mesh>;
#endif
using y = decltype(sw::embedding(table{}, ids{}));
