// SPDX-License-Identifier: Apache-2.0
// A partial maximum is redistributed as if it were a sum.
// expect: redistribute: a placement is partial with a reduction other than sum, which has no adjoint here
// expect: where<shardwise::op::redistribute, (shardwise::mesh<.*?>|mesh), shardwise::operand<shardwise::shape<8L?>, shardwise::partial<.*?> ?> ?>

#include "typed.hpp"

struct tp : sw::axis<2> {};
using mesh = sw::mesh<tp>;
#ifdef SHARDWISE_FAIL
using x = typed<float, sw::shape<8>, mesh, sw::on<tp, sw::partial<sw::reduction::max>>>;
#else
using x = typed<float, sw::shape<8>, mesh, sw::on<tp, sw::partial<>>>;
#endif
using y = decltype(sw::redistribute<tp, sw::replicate>(x{}));
