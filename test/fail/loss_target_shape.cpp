// SPDX-License-Identifier: Apache-2.0
// A cross entropy with one target for each class instead of each row.
// expect: cross entropy: the targets must have the logits' shape without the last (class) dim
// expect: shardwise::operand<shardwise::shape<4L?, 10L?>, shardwise::replicate ?>.*shardwise::operand<shardwise::shape<10L?>, shardwise::replicate ?>

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
