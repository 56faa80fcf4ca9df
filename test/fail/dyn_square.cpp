// SPDX-License-Identifier: Apache-2.0
// Two dims that scale with one run-time size are merged.
// expect: reshape: dims that scale with one run-time size (dyn) would be multiplied
// expect: where<shardwise::op::reshape, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<-8L?, -8L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<sw::dyn<8>, sw::dyn<8>>, mesh>;
#else
using x = typed<float, sw::shape<sw::dyn<8>, 8>, mesh>;
#endif
using y = decltype(sw::reshape<sw::dyn<64>>(x{}));
