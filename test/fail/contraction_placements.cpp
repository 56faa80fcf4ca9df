// SPDX-License-Identifier: Apache-2.0
// The product of two values that are not summed yet.
// expect: matmul: no rule admits these placements on a mesh axis
// expect: where<shardwise::op::einsum, (shardwise::mesh<.*?>|mesh), shardwise::operand<float, shardwise::shape<4L?, 8L?>, shardwise::partial<.*?> ?>, shardwise::operand<float, shardwise::shape<8L?, 6L?>, shardwise::partial<.*?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
using a = typed<float, sw::shape<4, 8>, mesh, sw::on<tp, sw::partial<>>>;
#ifdef SHARDWISE_FAIL
using b = typed<float, sw::shape<8, 6>, mesh, sw::on<tp, sw::partial<>>>;
#else
using b = typed<float, sw::shape<8, 6>, mesh, sw::on<tp, sw::reduced>>;
#endif
using c = decltype(sw::matmul(a{}, b{}));
