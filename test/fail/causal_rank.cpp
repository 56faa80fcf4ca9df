// SPDX-License-Identifier: Apache-2.0
// A causal softmax of a vector.
// expect: softmax: the causal form needs at least two dims (queries, keys), the last two
// expect: where<shardwise::op::softmax, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<8L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<8>, mesh>;
#else
using x = typed<float, sw::shape<8, 8>, mesh>;
#endif
using y = decltype(sw::causal_softmax(x{}));
