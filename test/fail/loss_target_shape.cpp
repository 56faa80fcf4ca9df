// SPDX-License-Identifier: Apache-2.0
// A cross entropy with one target for each class instead of each row.
// expect: cross entropy: the targets must have the logits' shape without the last (class) dim
// expect: shardwise::operand<float, shardwise::shape<4L?, 10L?>, shardwise::replicate ?>.*shardwise::operand<int(32_t)?, shardwise::shape<10L?>, shardwise::replicate ?>
// expect(text): operation: nll; operands: float[4, 10] (tp: replicate), float[4] (tp: replicate), std::int32_t[10] (tp: replicate); mesh: "tp" of 2; at fault: the third operand; dim: 0; extent: 10; required extent: 4

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using logits = typed<float, sw::shape<4, 10>, mesh>;
#ifdef SHARDWISE_FAIL
using target = typed<std::int32_t, sw::shape<10>, mesh>;
#else
using target = typed<std::int32_t, sw::shape<4>, mesh>;
#endif
using loss = decltype(sw::cross_entropy(logits{}, target{}));
