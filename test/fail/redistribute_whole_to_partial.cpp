// SPDX-License-Identifier: Apache-2.0
// A whole tensor has no shares of a product.
// expect: redistribute: a whole tensor has no shares under this reduction
// expect: shardwise::on<tp, shardwise::partial<

#include "typed.hpp"

struct dp : sw::axis<2> {};
struct tp : sw::axis<2> {};
using mesh = sw::mesh<dp, tp>;
using x = typed<float, sw::shape<4, 8>, mesh, sw::replicate, sw::replicate>;
#ifdef SHARDWISE_FAIL
using y = decltype(sw::redistribute<sw::on<tp, sw::partial<sw::reduction::product>>>(x{}));
#else
using y = decltype(sw::redistribute<sw::on<tp, sw::partial<sw::reduction::max>>>(x{}));
#endif
