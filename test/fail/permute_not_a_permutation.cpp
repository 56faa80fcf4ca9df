// SPDX-License-Identifier: Apache-2.0
// A permutation that names one dim twice.
// expect: permute: the dims given are not a permutation of 0..rank-1
// expect: where<shardwise::op::permute, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<2L?, 4L?, 8L?>, shardwise::replicate ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using x = typed<float, sw::shape<2, 4, 8>, mesh>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::permute<0, 2, 2>(x{}));
#else
using y = decltype(sw::permute<0, 2, 1>(x{}));
#endif
